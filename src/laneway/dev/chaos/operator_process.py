"""An operator who changes limits, pauses channels, kinds and queues, cancels, hurries, redrives and
discards.

``pause_set`` is written when the pause is certainly in force; ``resume_tried`` before it can end.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Literal, NamedTuple

from laneway import LanewayError, Policy, Queue
from laneway.operations import BulkAction

from .child import begin, config_text, stop_on_sigterm
from .config import (
    CHANGING,
    FAILS,
    MANUAL,
    ORDERED,
    PAUSABLE,
    PAUSABLE_KIND,
    PRIORITIZED,
    WORK,
    RunConfig,
    channel,
)
from .ledger import Ledger, error_fields


class PauseScope(NamedTuple):
    """What is paused: a channel, a kind, or with neither of them the whole queue."""

    queue: str
    kind: str | None = None
    channel: str | None = None


SCOPES = [
    scope
    for queue in (WORK, MANUAL)
    for scope in (
        PauseScope(queue, channel=channel(PAUSABLE, queue)),
        PauseScope(queue, kind=PAUSABLE_KIND),
        PauseScope(queue),
    )
]


def pause(queue: Queue, ledger: Ledger, scope: PauseScope, seconds: float | None) -> None:
    terms = scope._asdict()
    ledger.record("pause_tried", seconds=seconds, **terms)
    length = None if seconds is None else timedelta(seconds=seconds)
    if scope.channel is not None:
        queue.channel(scope.channel, queue=scope.queue).pause(length)
    else:
        queue.pause(queue=scope.queue, kind=scope.kind, duration=length)
    ledger.record("pause_set", seconds=seconds, **terms)


def resume(queue: Queue, ledger: Ledger, scope: PauseScope) -> None:
    ledger.record("resume_tried", **scope._asdict())
    if scope.channel is not None:
        queue.channel(scope.channel, queue=scope.queue).resume()
    else:
        queue.resume(queue=scope.queue, kind=scope.kind)
    ledger.record("resumed", **scope._asdict())


BACKLOG = 60


class OperatorProcess:
    def __init__(self, config: RunConfig, queue: Queue) -> None:
        self._queue = queue
        self._rng = config.rng
        self._ledger = config.ledger()
        self._policies = 0

    def begin(self) -> None:
        """Ends what another one before it, which was killed, has paused."""
        for scope in SCOPES:
            with suppress(LanewayError):
                resume(self._queue, self._ledger, scope)
        if self._rng.random() < 0.6:
            with suppress(LanewayError):
                self._fairness(self._rng.choice((WORK, MANUAL)))

    def act(self) -> None:
        actions: dict[Callable[[str], None], int] = {
            self._limit: 4, self._pause: 4, self._pause_for_a_time: 3, self._cancel: 3,
            self._cancel_running: 2, self._run_now: 3, self._redrive: 1, self._operate: 4,
            self._fairness: 1,
        }  # fmt: skip
        action = self._rng.choices(list(actions), list(actions.values()))[0]
        try:
            action(self._rng.choice((WORK, MANUAL)))
        except LanewayError as error:
            self._ledger.record("operation_failed", **error_fields(error))

    def _limit(self, queue: str) -> None:
        """Also while more run than the new limit allows."""
        if self._rng.random() < 0.5:
            self._set_limit(queue, None)
            time.sleep(self._rng.uniform(0.2, 0.8))
        self._set_limit(queue, self._rng.choice((1, 2, 3, 4, None)))

    def _set_limit(self, queue: str, limit: int | None) -> None:
        name = channel(CHANGING, queue)
        self._policies += 1
        number = self._policies
        self._ledger.record("policy_tried", number=number, channel=name, concurrency=limit)
        policy = Policy(concurrency=limit, backlog=self._rng.choice((BACKLOG, None)))
        self._queue.set_policies({name: policy}, queue=queue)
        self._ledger.record("policy_set", number=number, channel=name)

    def _pause(self, queue: str) -> None:
        """A whole queue only shortly: everything else of the run waits for it."""
        scope = self._scope(queue)
        pause(self._queue, self._ledger, scope, None)
        longest = 2.0 if scope.channel is not None else 0.6
        time.sleep(self._rng.uniform(0.1, longest))
        resume(self._queue, self._ledger, scope)

    def _fairness(self, queue: str) -> None:
        """Whose turn it is changes; all that is promised of messages and limits does not."""
        by: Literal["starts", "time"] = self._rng.choice(("time", "time", "starts"))
        self._queue.set_fairness(by, queue=queue)
        self._ledger.record("fairness", queue=queue, by=by)

    def _pause_for_a_time(self, queue: str) -> None:
        pause(self._queue, self._ledger, self._scope(queue), self._rng.uniform(0.3, 1.2))

    def _scope(self, queue: str) -> PauseScope:
        """Mostly a channel: pauses of more than that are short."""
        scopes = [scope for scope in SCOPES if scope.queue == queue]
        return self._rng.choices(scopes, [1 if scope.channel is None else 3 for scope in scopes])[0]

    def _cancel(self, queue: str) -> None:
        """Some waiting and some leased messages."""
        self._cancel_some(queue, running=False)

    def _cancel_running(self, queue: str) -> None:
        """Those that run are asked to stop."""
        self._cancel_some(queue, running=True)

    def _cancel_some(self, queue: str, running: bool) -> None:
        found = [*self._queue.messages(queue=queue, limit=200)]
        if running:
            found = [m for m in found if m.state == "leased"] or found
        ids = [
            m.id
            for m in self._rng.sample(found, min(4, len(found)))
            if not m.channel.startswith((ORDERED, PRIORITIZED))
        ]
        cancel(self._queue, self._ledger, ids, running)

    def _run_now(self, queue: str) -> None:
        """Mostly messages that are scheduled for later; any answer is right for the others."""
        found = [*self._queue.messages(queue=queue, limit=200)]
        later = [m for m in found if m.state == "scheduled"] or found
        ids = [
            m.id
            for m in self._rng.sample(later, min(3, len(later)))
            if not m.channel.startswith((ORDERED, PRIORITIZED))
        ]
        run_now(self._queue, self._ledger, ids)

    def _redrive(self, queue: str) -> None:
        """At once, in one queue; bulk operations work on the other."""
        name = channel(FAILS, MANUAL)
        count = self._queue.dead_letters.redrive(queue=MANUAL, channel=name)
        self._ledger.record("redriven", channel=name, count=count)

    def _operate(self, queue: str) -> None:
        """A bulk operation, which is waited for, cancelled on its way, or left to upkeep."""
        action: BulkAction = "discard" if self._rng.random() < 0.3 else "redrive"
        delay = self._rng.choice((0, 0.5)) if action == "redrive" else 0
        self._ledger.record("bulk_tried", action=action)
        started = self._queue.operations.start(
            action, queue=WORK, channel=channel(FAILS, WORK), delay=delay
        )
        self._ledger.record("bulk_started", id=started.id, action=action, total=started.total)
        choice = self._rng.random()
        if choice < 0.4:
            self._queue.operations.run(started.id)
        elif choice < 0.6:
            self._queue.operations.step(started.id)
            ended = self._queue.operations.cancel(started.id)
            self._ledger.record("bulk_cancelled", id=ended.id, state=ended.state, done=ended.done)


def cancel(queue: Queue, ledger: Ledger, ids: list[int], running: bool) -> None:
    ledger.record("cancel_tried", ids=ids)
    for answer in queue.cancel(ids, running=running):
        ledger.record("cancel_answered", id=answer.id, status=answer.status)


def run_now(queue: Queue, ledger: Ledger, ids: list[int]) -> None:
    ledger.record("run_now_tried", ids=ids)
    for answer in queue.run_now(ids):
        ledger.record("run_now_answered", id=answer.id, status=answer.status)


def main(text: str) -> None:
    config = begin(text)
    stopping = stop_on_sigterm()
    with config.queue() as queue:
        operator = OperatorProcess(config, queue)
        operator.begin()
        pace = random.Random(f"{config.seed}/{config.name}/pace")
        while not stopping.wait(pace.uniform(0.0, 0.25)):
            operator.act()


if __name__ == "__main__":
    main(config_text())
