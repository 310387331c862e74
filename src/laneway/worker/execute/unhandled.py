"""Which kinds a worker claims, and what becomes of messages that have no handler here."""

import logging
from datetime import timedelta

from laneway.client.aio.database import AsyncDatabase
from laneway.errors import LanewayError
from laneway.operations import WorkerInfo
from laneway.worker.clock import now
from laneway.worker.handlers import Handlers
from laneway.worker.job import Job
from laneway.worker.outcomes import Fail, GiveBack, Outcome

# Which kinds a worker claims: all of them, until it meets one that it has no handler for.

_log = logging.getLogger("laneway.worker")

_MOST_COMPARED = 1_000


class KindFilter:
    """A queue that is claimed by kind costs its publishers one more index. So nobody does until
    there is a reason: another worker of the queue handles other kinds, or there is a message that
    this one cannot handle."""

    def __init__(self, handlers: Handlers, database: AsyncDatabase) -> None:
        self._handled = handlers.claimed_kinds(database.engine.lacks)
        self._database = database
        self.claimed: tuple[str, ...] | None = None
        """What it claims now; None: every kind."""

    @property
    def handled(self) -> tuple[str, ...] | None:
        """What it would claim; None: every kind, because it handles all of them, or because this
        database cannot claim by kind."""
        return self._handled

    def turn_on(self, reason: str) -> None:
        if self._handled is not None and self.claimed is None:
            self.claimed = self._handled
            kinds = ", ".join(self._handled) or "none"
            _log.warning("claiming only kinds that have a handler here (%s): %s", kinds, reason)

    async def look_around(self, queues: tuple[str, ...]) -> None:
        """Turns it on if another worker of these queues handles other kinds."""
        if self._handled is None:
            return
        try:
            workers = await self._database.run(
                self._database.engine.workers.workers(_MOST_COMPARED)
            )
        except LanewayError as error:
            _log.debug("cannot ask which workers there are: %s", error)
            return
        if any(self._differs(worker, queues) for worker in workers):
            self.turn_on("another worker of the queue handles other kinds")

    def _differs(self, worker: WorkerInfo, queues: tuple[str, ...]) -> bool:
        shares = worker.state == "running" and not set(queues).isdisjoint(worker.queues)
        return shares and bool(set(worker.kinds) - set(self._handled or ()))


# Messages of a kind that has no handler here: during a deploy another worker may have one.

_MAX_REMEMBERED = 10_000
_MOST_WORKERS = 10_000
_ASK_EVERY = 10.0  # seconds


class Unhandled:
    """Puts them back. If the worker can claim by kind it does so from then on, and they wait for
    whoever handles them. Else they are put back for ``delay`` each, and become dead letters after
    ``timeout``, unless a live worker handles them."""

    def __init__(
        self,
        database: AsyncDatabase,
        kinds: KindFilter | None,
        delay: timedelta,
        timeout: timedelta,
    ) -> None:
        self._database = database
        self._kinds = kinds
        self._delay = delay
        self._timeout = timeout
        self._warned: set[str] = set()
        self._first_seen: dict[int, float] = {}
        self._workers: list[WorkerInfo] = []
        self._asked_at = -_ASK_EVERY

    async def outcome(self, job: Job) -> Outcome:
        if self._kinds is not None and self._kinds.handled is not None:
            self._kinds.turn_on(f"message {job.id} has the kind {job.kind!r}")
            return GiveBack()
        if job.kind not in self._warned:
            self._warn(job)
        if await self._waited(job) >= self._timeout and not await self._handled_elsewhere(job):
            self._first_seen.pop(job.id, None)
            return Fail("no_handler")
        return GiveBack(self._delay)

    async def _handled_elsewhere(self, job: Job) -> bool:
        """Whether a live worker handles such messages: then it is put back for as long as it takes.
        If nobody can be asked, it is not given up."""
        if now() - self._asked_at > _ASK_EVERY:
            try:
                plan = self._database.engine.workers.workers(_MOST_WORKERS)
                self._workers = await self._database.run(plan)
            except LanewayError:
                return True
            self._asked_at = now()
        return any(worker.handles(job.queue, job.kind) for worker in self._workers)

    def _warn(self, job: Job) -> None:
        if len(self._warned) >= _MAX_REMEMBERED:
            self._warned.clear()
        self._warned.add(job.kind)
        what = f"kind {job.kind!r}" if job.kind else "messages without a kind"
        _log.warning(
            "no handler for %s: putting such messages back for %s each, and making them dead "
            "letters after %s",
            what,
            self._delay,
            self._timeout,
            extra=job.log_fields(),
        )

    async def _waited(self, job: Job) -> timedelta:
        """Since it was first given back, by any worker, as far as the history or this worker knows.
        Not since it was published: it may have been scheduled for later."""
        moment = now()
        if len(self._first_seen) >= _MAX_REMEMBERED:
            del self._first_seen[next(iter(self._first_seen))]
        seen = timedelta(seconds=moment - self._first_seen.setdefault(job.id, moment))
        if seen >= self._timeout or job.claimed_at - job.published_at < self._timeout:
            return seen
        try:
            history = await self._database.run(self._database.engine.inspection.history(job.id))
        except LanewayError:
            return seen
        given = [e.ended_at for e in history if e.outcome == "given_back"]
        return max(seen, job.claimed_at - min(given)) if given else seen
