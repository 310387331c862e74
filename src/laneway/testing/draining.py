"""Running a worker in a test until nothing is left to do, now or by a moment."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from laneway.client.shared.checks import blocks_a_loop
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidCall, InvalidOption, InvalidTime
from laneway.model import ClaimStatus, DeadLetter, Settled
from laneway.worker.definition import WorkerDefinition, limited_options
from laneway.worker.job import Job
from laneway.worker.telemetry import process_wide
from laneway.worker.telemetry.observer import OutcomeName, settled_name

from .movable_clock import clock

if TYPE_CHECKING:
    from laneway.client.aio.queue import AsyncQueue
    from laneway.worker.worker import Worker

_MOST_MOVES = 10_000
# A due time that has passed without a message: the claim may have had to leave it to another.
_SHORTEST_MOVE = timedelta(milliseconds=1)
_MOST_LETTERS = 1_000


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a handler. ``outcome`` is "completed", "retried", "deferred", "failed" (a dead
    letter now), "cancelled", "given_back", "left" (not settled) or "lost" (the lease was)."""

    id: int
    queue: str
    channel: str
    kind: str
    attempt: int
    outcome: OutcomeName


def drain(
    worker: "Worker",
    *,
    later: bool = False,
    until: datetime | Duration | None = None,
    check: bool = False,
) -> list[Ran]:
    """Handles everything that is due, and what that publishes for now, then returns what ran, in
    order. What is deferred or retried later stays.

    With ``later`` the clock of the tests is moved on to whatever waits (retries, delays, rates)
    until nothing does. With ``until``, a time or how long from now, it is moved on as far as that,
    from one due time and one tick of a schedule to the next. ``check`` raises AssertionError if
    anything became a dead letter.

    >>> drain(worker)
    >>> drain(worker, later=True, check=True)
    >>> drain(worker, until=timedelta(days=7))
    """
    if blocks_a_loop():
        raise InvalidCall("drain() would block the event loop: write await drain_async(worker)")
    return asyncio.run(drain_async(worker, later=later, until=until, check=check))


async def drain_async(
    worker: "Worker",
    *,
    later: bool = False,
    until: datetime | Duration | None = None,
    check: bool = False,
) -> list[Ran]:
    """The same in a running event loop."""
    end = _moment(until)
    moves = later or end is not None
    databases = [worker._defined(one, worker._options) for one in worker._databases]
    if moves:
        _check_movable(databases)
    draining = Draining(moves, end)
    options = limited_options(worker._options, True, None, None)
    if len(databases) == 1:
        options = replace(options, when_empty=draining.when_empty)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(d.open_client()) for d in databases if check]
        begun = [await client.clock() for client in clients]
        process_wide.observers.append(draining)
        try:
            await worker._work(options)
        finally:
            process_wide.observers.remove(draining)
        for client, since, database in zip(clients, begun, databases, strict=False):
            await _check_letters(client, since, database.options.queues)
    return draining.ran


def _moment(until: datetime | Duration | None) -> datetime | None:
    if until is None:
        return None
    if not isinstance(until, datetime):
        return clock.now() + check_duration("until", until)
    if until.tzinfo is None:
        raise InvalidTime(f"until is {until}, without a time zone")
    return until


def _check_movable(databases: Sequence[WorkerDefinition]) -> None:
    if len(databases) > 1:
        raise InvalidOption(
            "the worker serves several databases: drain one worker for each with later= or until="
        )
    if databases[0].address.clock is not None:
        raise InvalidOption("the worker's queue has a clock= of its own, which drain cannot move")


async def _check_letters(client: "AsyncQueue", since: datetime, queues: Sequence[str]) -> None:
    found: list[DeadLetter] = []
    for queue in queues:
        page = await client.dead_letters.list(queue=queue, since=since, limit=_MOST_LETTERS)
        found += page
    if found:
        many = f"{len(found)} dead letters" if len(found) > 1 else "a dead letter"
        lines = [f"the worker left {many}:", *map(_line, reversed(found))]
        raise AssertionError("\n".join(lines))


def _line(letter: DeadLetter) -> str:
    error = f": {letter.error_type or ''}: {letter.error}" if letter.error else ""
    line = (
        f"message {letter.id} (kind {letter.kind!r}, channel {letter.channel!r}), "
        f"attempt {letter.attempt}, reason {letter.reason!r}{error}"
    )
    return f"{line}\n{letter.traceback}" if letter.traceback else line


class Draining:
    """An observer of the run, and what is asked when the queue is empty."""

    def __init__(self, moves: bool, end: datetime | None) -> None:
        self.ran: list[Ran] = []
        self._moves = moves
        self._end = end
        self._moved = 0
        self._outcomes: dict[Job, OutcomeName] = {}
        self._answers: dict[Job, Settled | None] = {}

    async def when_empty(self, client: "AsyncQueue", look_again: timedelta | None) -> bool:
        """Whether there is more to do, now that the clock was moved to it."""
        fired = await client.fire_schedules()
        upkeep = await client.upkeep()
        if fired.fired or upkeep.expired:
            return True
        wait = self._wait(look_again, fired.look_again) if self._moves else None
        if wait is None:
            if self._end is not None and self._end > clock.now():
                clock.move_to(self._end)
            return False
        self._moved += 1
        if self._moved > _MOST_MOVES:
            raise AssertionError(
                f"the clock was moved {_MOST_MOVES} times, to {clock.now()}, and messages still "
                "wait: give until= if a handler goes on for ever"
            )
        clock.move(max(wait, _SHORTEST_MOVE))
        return True

    def _wait(self, look_again: timedelta | None, tick: timedelta | None) -> timedelta | None:
        """How long it is until something is due; ticks of schedules never end, so they alone are
        no reason without an end."""
        if look_again is None and self._end is None:
            return None
        wait = min((one for one in (look_again, tick) if one is not None), default=None)
        if wait is None or (self._end is not None and clock.now() + wait > self._end):
            return None
        return wait

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None: ...

    def lost(self, job: Job) -> None: ...

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        self._outcomes[job] = outcome
        self._note(job)

    def settled(self, job: Job, result: Settled | None) -> None:
        self._answers[job] = result or job.own_result  # the worker's call, or the handler's own
        self._note(job)

    def _note(self, job: Job) -> None:
        """A handler that has settled its message itself ends last."""
        if job not in self._outcomes or job not in self._answers:
            return
        ended, answer = self._outcomes.pop(job), self._answers.pop(job)
        if job.handler is None:
            return  # put back for others
        outcome = settled_name(ended, answer)
        self.ran.append(Ran(job.id, job.queue, job.channel, job.kind, job.attempt, outcome))
