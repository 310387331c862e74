"""A consumer without a Worker: claims and settles in batches and one by one, late and twice."""

import time
from datetime import timedelta
from itertools import groupby

from laneway import LanewayError, Message, Queue
from laneway.errors import ConnectionUnavailable, LeaseLost

from .app_connection import AppConnection
from .child import begin, config_text, stop_on_sigterm
from .config import LEASE, MANUAL, ORDERED, PRIORITIZED, RunConfig
from .ledger import error_fields
from .worker_process import REPEATS, real_time, record_start

TENTH = timedelta(milliseconds=100)
SOON = timedelta(milliseconds=200)
KINDS = ("plain", "slow", "late", "repeat", "fail", "effect", "long")
LATE = 9  # one of so many messages is settled after its lease


class ManualConsumer:
    def __init__(self, config: RunConfig, queue: Queue) -> None:
        self._config = config
        self._queue = queue
        self._rng = config.rng
        self._ledger = config.ledger()
        self._app: AppConnection | None = None
        self._held: list[tuple[float, Message]] = []

    def act(self) -> float:
        """One claim and what follows; returns how many seconds to wait before the next."""
        self._settle_held()
        try:
            claim = self._queue.claim(self._rng.randint(1, 8), kinds=self._kinds())
        except LanewayError as error:
            self._ledger.record("claim_failed", **error_fields(error))
            return 0.3
        # Some messages are never started.
        begun = [m for m in claim if self._rng.random() < 0.95]
        for message in begun:
            record_start(self._ledger, message)
        self._settle([m for m in claim if m not in begun], "give_back")
        for verb, group in groupby(sorted(begun, key=self._verb), key=self._verb):
            self._settle_group(verb, list(group))
        return 0.0 if claim else 0.1

    def _kinds(self) -> list[str] | None:
        """By kind: some claims take a part of them, some all."""
        if not self._config.by_kind or self._rng.random() < 0.3:
            return None
        return self._rng.sample(KINDS, 4)

    def _verb(self, message: Message) -> str:
        """How to treat the message: by its kind, otherwise by its id and fence."""
        if message.kind in ("fail", "repeat", "effect"):
            return message.kind
        if message.id % LATE == 0 and not message.channel.startswith((ORDERED, PRIORITIZED)):
            return "late" if message.attempt == 1 else "extend"
        number = (message.id * 7 + message.fence) % 20
        return {1: "extend", 2: "single", 3: "give_up", 4: "single"}.get(number, "batch")

    def _settle_group(self, verb: str, messages: list[Message]) -> None:
        if verb == "batch":
            self._work(messages)
            self._settle(messages, "complete")
            return
        for message in messages:
            getattr(self, f"_{verb}")(message)

    def _work(self, messages: list[Message]) -> None:
        slow = any(message.kind == "slow" for message in messages)
        time.sleep(self._rng.uniform(0.3, 0.6) if slow else self._rng.uniform(0, 0.03))

    def _single(self, message: Message) -> None:
        self._work([message])
        self._settle([message], "complete")

    def _give_up(self, message: Message) -> None:
        if message.channel.startswith(ORDERED):
            return self._single(message)
        return self._settle([message], "fail" if message.attempt == 1 else "complete")

    def _late(self, message: Message) -> None:
        """Kept past its lease, and settled while the next consumer has it: that must be refused."""
        until = time.monotonic() + LEASE.total_seconds() + self._rng.uniform(0.8, 3)
        self._ledger.record(
            "fault",
            kind="late",
            target=self._config.name,
            id=message.id,
            span=LEASE.total_seconds(),
        )
        self._held.append((until, message))

    def _settle_held(self) -> None:
        now = time.monotonic()
        due = [message for until, message in self._held if until <= now]
        self._held = [item for item in self._held if item[0] > now]
        for message in due:
            if message.kind == "effect":  # never completed without its effect
                self._effect(message)
        due = [message for message in due if message.kind != "effect"]
        verb = self._rng.choice(("complete", "complete", "defer", "fail", "give_back", "extend"))
        if verb != "extend":
            self._settle(due, verb)
            return
        for message in due:
            if self._extend_lease(message, LEASE):
                self._settle([message], "complete")

    def _extend(self, message: Message) -> None:
        """Twice, the second time for less: an extension never shortens. Kept for a while, so that
        a consumer that had it before settles too late while we have it."""
        if self._extend_lease(message, LEASE * 2):
            self._extend_lease(message, LEASE / 4)
        self._held.append((time.monotonic() + LEASE.total_seconds() * 0.8, message))

    def _extend_lease(self, message: Message, length: timedelta) -> bool:
        tried = real_time()
        try:
            until = message.extend(length)
        except (LanewayError, LeaseLost):
            return False
        self._ledger.record(
            "extended", id=message.id, fence=message.fence, until=until.timestamp(), tried=tried
        )
        return True

    def _repeat(self, message: Message) -> None:
        done = 0 if message.state is None else message.state_json()["done"]
        if done >= REPEATS:
            self._settle([message], "complete")
        else:
            self._settle([message], "defer", delay=TENTH, state={"done": done + 1})

    def _fail(self, message: Message) -> None:
        if message.failures < message.json()["fails"]:
            self._settle([message], "defer", delay=SOON, reason="not yet")
        else:
            self._settle([message], "complete")

    def _effect(self, message: Message) -> None:
        """The effect and the completion in one transaction of our own, which may be rolled back."""
        try:
            self._app = self._app or AppConnection(self._config)
            self._app.begin()
            self._app.add_effect(message.json()["n"])
            if self._config.engine != "sqlite" and self._rng.random() < 0.2:
                time.sleep(0.5)  # so that the transaction's own timestamp is in the past
            self._ledger.record("settle_tried", id=message.id, fence=message.fence, verb="complete")
            if message.failures < message.json()["fails"]:
                message.complete(result={"fence": message.fence}, connection=self._app.connection)
                self._app.execute("rollback")
                return self._settle([message], "defer", delay=SOON, reason="not yet")
            message.complete(result={"fence": message.fence}, connection=self._app.connection)
            self._app.execute("commit")
        except LeaseLost:
            self._record(message, "complete", "lost")
            self._drop_connection()
        except Exception as error:
            self._record(message, "complete", "unknown", error=str(error))
            self._drop_connection()
        else:
            self._record(message, "complete", "accepted")

    def finish(self) -> None:
        """Gives back what it holds, as a graceful stop does."""
        self._settle([message for _, message in self._held], "give_back")

    def _drop_connection(self) -> None:
        if self._app is not None:
            self._app.close()
        self._app = None

    def _settle(self, messages: list[Message], verb: str, **options: object) -> None:
        if not messages:
            return
        delay = options.get("delay")
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else 0.0
        state = options.get("state")
        saves = state["done"] if isinstance(state, dict) else None
        for message in messages:
            self._ledger.record(
                "settle_tried", id=message.id, fence=message.fence, verb=verb, delay=seconds,
                saves=saves,
            )  # fmt: skip
        if verb == "complete":
            options["results"] = [{"fence": message.fence} for message in messages]
        try:
            results = getattr(self._queue, verb)(messages, **options)
        except LanewayError as error:
            unknown = isinstance(error, ConnectionUnavailable)
            # Without the text: that stands for the consumer's own connection.
            failed = error_fields(error)
            failed.pop("error")
            for message in messages:
                self._record(message, verb, "unknown" if unknown else "failed", **failed)
            # Tried again later: by then it is done, lost or still ours.
            self._held += [(time.monotonic() + 0.5, message) for message in messages]
            return
        by_lease = {(result.id, result.fence): result for result in results}
        for message in messages:
            lost = by_lease[message.id, message.fence].lost
            self._record(message, verb, "lost" if lost else "accepted")

    def _record(self, message: Message, verb: str, result: str, **fields: str) -> None:
        self._ledger.record(
            f"settle_{result}", id=message.id, fence=message.fence, verb=verb, **fields
        )


def main(text: str) -> None:
    config = begin(text)
    stopping = stop_on_sigterm()
    with config.queue(MANUAL) as queue:
        consumer = ManualConsumer(config, queue)
        while not stopping.is_set():
            time.sleep(consumer.act())
        consumer.finish()


if __name__ == "__main__":
    main(config_text())
