"""One worker for several databases: each has its own claim loop, leases and upkeep, and all share
the worker's slots.

A slot that comes free goes to a database that has fewer than its share, by weight, of those that
have work; what cannot be divided goes round in turns. Nobody's slots lie idle while another has
work. A database that is away has no share: its loop claims nothing, and what its handlers hold, who
may all be waiting for it, is not counted until it is back.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from laneway.client.aio.queue import AsyncQueue
from laneway.errors import ConnectionUnavailable, InvalidOption, LanewayError
from laneway.worker.clock import Backoff, now
from laneway.worker.definition import ServedDatabase, WorkerDefinition, WorkerOptions
from laneway.worker.execute.pool import MAX_PREFETCH, HandlerPool, Slots
from laneway.worker.execute.transactions import check_transactions
from laneway.worker.handlers import check_payload
from laneway.worker.telemetry import logs
from laneway.worker.telemetry.health import Health, PartlyReady
from laneway.worker.telemetry.observer import Observer

from .loop import NO_WRITES, WorkerLoop
from .shutdown import CLOSE_TIMEOUT, Shutdown, cancel_all, finish_within

_log = logging.getLogger("laneway.worker")

# Seconds: how often each database is watched; after what silence it is asked; for how long it may
# think about that, or about a claim; and for how long a claim keeps the slots that it asked for.
_WATCH_EVERY = 0.5
_ASK_AFTER = 1.0
_SILENT_AFTER = 2.0
_KEPT_FOR = 1.0
# Seconds for readiness, within the time that health itself waits.
_READY_TIMEOUT = 1.5


# The slots, and whose turn it is.


class SharedSlots:
    """Those of a worker, for the databases that it serves."""

    def __init__(self, total: int, weights: Sequence[int], processes: int) -> None:
        self.total = total
        self.processes = asyncio.Semaphore(processes)
        self.clients: dict[tuple[str, str], AsyncQueue] = {}
        self.claimed = 0
        self.changes = 0
        """Counts starts and ends of handlers."""
        self.turn = 0.0
        """How far the turns have come: each start moves its database on by 1 / weight."""
        self.lag = 1 / min(weights)
        self.parts = [SlotsOfOne(self, weight) for weight in weights]

    def free(self, mine: "SlotsOfOne") -> int:
        """Those that nobody holds; a claim of one's own does not stand in one's way."""
        others = sum(one.held for one in self.parts if one is not mine and not one.away)
        return self.total - others - mine.pool.busy

    def rivals(self, mine: "SlotsOfOne") -> list["SlotsOfOne"]:
        return [one for one in self.parts if one is not mine and one.wants]

    def share(self, one: "SlotsOfOne", mine: "SlotsOfOne") -> int:
        """Of the slots, by weight among those that have work; rounded down."""
        active = sum(p.weight for p in self.parts if p is mine or p.wants or p.is_working)
        return self.total * one.weight // active

    def wake(self, mine: "SlotsOfOne | None" = None) -> None:
        """There may be something to start, or to claim."""
        for one in sorted(self.parts, key=lambda one: one.turn):
            if one is not mine and one.wants:
                one.pool.refill()


class _Pool(Protocol):
    """What is looked at of a pool of handlers."""

    @property
    def busy(self) -> int: ...
    @property
    def queued(self) -> int: ...
    def refill(self) -> None: ...
    async def idle(self) -> None: ...


class _NoPool:
    """Before its loop is there."""

    busy = queued = 0

    def refill(self) -> None:
        pass

    async def idle(self) -> None:
        pass


class SlotsOfOne(Slots):
    """What one database may hold of them."""

    def __init__(self, shared: SharedSlots, weight: int) -> None:
        self.shared = shared
        self.total = shared.total
        self.weight = weight
        self.processes = shared.processes
        self.clients = shared.clients
        self.turn = 0.0
        self.away = False
        self.pool: _Pool = _NoPool()  # type: ignore[assignment]
        self._granted = 0
        self._kept = 0
        self._hungry = self._found = False
        self._empty_at: int | None = None
        self.asked_at: float | None = None
        """When the claim under way began."""
        self.answered_at = 0.0
        self.problem: str | None = None

    def attach(self, pool: HandlerPool) -> None:
        """Of a new loop: the one before may have been ended in the middle of a claim."""
        super().attach(pool)
        self._granted = self._kept = 0
        self._hungry, self._empty_at, self.asked_at = False, None, None

    @property
    def claimed(self) -> int:
        return self.shared.claimed

    @claimed.setter
    def claimed(self, value: int) -> None:
        self.shared.claimed = value

    @property
    def _reserved(self) -> int:
        """For the claim under way."""
        return self._kept if self._is_claiming else 0

    @property
    def held(self) -> int:
        return self.pool.busy + self._reserved

    @property
    def is_working(self) -> bool:
        return not self.away and self.held > 0

    @property
    def wants(self) -> bool:
        """Whether it would start or claim something if there were a slot; also while it claims, if
        its last claim found messages: what comes free meanwhile would be gone."""
        if self.away:
            return False
        return self._hungry or self.pool.queued > 0 or (self._found and self._is_claiming)

    @property
    def _is_claiming(self) -> bool:
        """One that is not answered soon keeps nothing from the others."""
        return self.asked_at is not None and now() - self.asked_at <= _KEPT_FOR

    def room(self, busy: int) -> int:
        if self.away:
            self._granted = 0
            return -MAX_PREFETCH  # nothing ahead of time either
        self._granted = max(0, self._grant(busy))
        self._hungry = self._granted < 1
        return self._granted

    def _grant(self, busy: int) -> int:
        shared, free = self.shared, self.shared.free(self)
        rivals = shared.rivals(self)
        if free < 1 or not rivals:
            return free
        # What the others still lack of their shares stays theirs, unless it is our turn.
        lacking = sum(max(0, shared.share(one, self) - one.held) for one in rivals)
        own = shared.share(self, self) - busy
        if own > 0:
            return min(own, free if self._is_next(busy, rivals) else free - lacking)
        return 1 if self._is_next(busy, rivals) and free > lacking else 0

    def take(self, busy: int) -> bool:
        if self.away or self.shared.free(self) < 1:
            return False
        rivals = self.shared.rivals(self)
        if rivals and not self._is_next(busy, rivals):
            return False
        self._advance()
        return True

    def _is_next(self, busy: int, rivals: list["SlotsOfOne"]) -> bool:
        """Before others come those with less than their share; among these it goes in turns."""
        shared = self.shared
        mine = (busy >= shared.share(self, self), self._place())
        return all(mine <= (r.held >= shared.share(r, self), r._place()) for r in rivals)

    def _place(self) -> float:
        """Who had nothing to do does not save up turns."""
        return max(self.turn, self.shared.turn - self.shared.lag)

    def _advance(self) -> None:
        self.turn = self._place() + 1 / self.weight
        self.shared.turn = max(self.shared.turn, self.turn)
        self.shared.changes += 1

    def freed(self) -> None:
        self.shared.changes += 1
        self.shared.wake(self)

    def asking(self) -> int:
        self.asked_at, self._kept, self._empty_at = now(), self._granted, None
        return self.shared.changes

    def answered(self, found: int, error: LanewayError | None = None) -> None:
        self.asked_at, self._kept, self._hungry, self._found = None, 0, False, found > 0
        if error is None or not isinstance(error, ConnectionUnavailable):
            self.answered_at, self.problem = now(), None
            self.away = False
        else:
            self.away, self.problem = True, str(error)
        self.shared.wake(self)

    def asked_elsewhere(self) -> int:
        found = sum(one._reserved for one in self.shared.parts if one is not self)
        self._hungry = self._hungry or found > 0  # and is woken when they are answered
        return found

    def emptied(self, asked: int) -> bool:
        """Everywhere, since the last handler ended: it may have published into another database."""
        self._empty_at = asked
        late = [one for one in self.shared.parts if one._empty_at != self.shared.changes]
        for one in late:
            if one is not self and not one.away:
                one.wake()
        return not late

    async def idle(self) -> None:
        while busy := [one for one in self.shared.parts if one.pool.busy or one.pool.queued]:
            await busy[0].pool.idle()

    def leave(self, problem: str) -> None:
        """It is away, until it answers."""
        self.away, self.problem = True, problem
        self.shared.wake(self)


# The databases.


class _Named(logging.Filter):
    """Log lines say which database they are about."""

    def filter(self, record: logging.LogRecord) -> bool:
        if (name := logs.database.get()) is not None and not hasattr(record, "database"):
            record.database = name
            record.msg = f"{name.replace('%', '%%') if record.args else name}: {record.msg}"
        return True


class DatabaseLoop:
    """One database of the fleet: its loop, which is started again if it fails."""

    def __init__(
        self,
        database: ServedDatabase,
        definition: WorkerDefinition,
        observers: Sequence[Observer],
        shutdown: Shutdown,
        slots: SlotsOfOne,
    ) -> None:
        self.name = database.name
        self._place = database.place
        self._definition = definition
        self._observers = observers
        self._shutdown = shutdown
        self._slots = slots
        self._loop: WorkerLoop | None = None
        self._away_since: datetime | None = None
        self._probe: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[list[str]] | None = None

    async def work(self) -> None:
        """Until it is stopped."""
        logs.database.set(self.name)
        backoff = Backoff(0.5, 10.0)
        while not self._shutdown.requested.is_set():
            try:
                await self._work_once()
            except InvalidOption:
                raise
            except Exception as error:
                ours = not isinstance(error, LanewayError)
                _log.error("cannot serve it, trying again: %s", error, exc_info=ours)
                self._slots.leave(str(error))
                self._note()
            with suppress(TimeoutError):
                async with asyncio.timeout(backoff.next()):
                    await self._shutdown.requested.wait()

    async def _work_once(self) -> None:
        client = self._definition.open_client()
        watching: asyncio.Task[None] | None = None
        try:
            self._loop = WorkerLoop(
                client, self._definition, self._observers, self._shutdown.part(), self._slots
            )
            self._slots.clients[self._place] = client  # type: ignore[index]
            watching = asyncio.create_task(self._watch(client))
            await self._loop.work()
        finally:
            self._loop = None
            tasks = [task for task in (watching, self._probe, self._asking) if task is not None]
            self._probe = self._asking = None
            if tasks:
                await cancel_all(tasks, CLOSE_TIMEOUT)  # type: ignore[arg-type]
            await finish_within(client.close(), CLOSE_TIMEOUT)

    async def _watch(self, client: AsyncQueue) -> None:
        """Whether the database answers. It is asked only if nothing else has asked it lately."""
        slots, begun = self._slots, 0.0
        while True:
            before = now()
            await asyncio.sleep(_WATCH_EVERY)
            if now() - before > 2 * _WATCH_EVERY:
                continue  # we were stopped ourselves: answers may lie unread
            claim, probe = slots.asked_at, self._probe
            if probe is None and claim is None and now() - slots.answered_at > _ASK_AFTER:
                begun = now()
                self._probe = asyncio.create_task(self._ask(client))
            waited = max(now() - begun if probe else 0, 0 if claim is None else now() - claim)
            if waited > _SILENT_AFTER and not slots.away:
                slots.leave(f"it has not answered for {waited:.0f} s")
            self._note()
            slots.shared.wake()  # for what a silent claim does not keep any longer

    async def _ask(self, client: AsyncQueue) -> None:
        try:
            takes_writes = await client.database.run(client.database.engine.schema.takes_writes())
        except LanewayError as error:
            self._slots.leave(str(error))
        else:
            self._slots.answered_at = now()
            if not takes_writes:
                self._slots.leave(NO_WRITES)
            elif self._slots.away and self._loop is not None and self._loop.prepared:
                self._slots.away, self._slots.problem = False, None
                self._slots.wake()
        finally:
            self._probe = None

    def _note(self) -> None:
        if self._slots.away and self._away_since is None:
            self._away_since = datetime.now(UTC)
            _log.warning("the database is away: %s", self._slots.problem)
        elif not self._slots.away and self._away_since is not None:
            self._away_since = None
            _log.info("the database answers")

    async def problems(self) -> list[str]:
        """Named; answers in time though the database may be silent."""
        asking = self._asking
        if asking is None and self._loop is not None:
            asking = self._asking = asyncio.create_task(_asked(self._loop))
        if self._shutdown.requested.is_set():
            found = ["the worker is stopping"]
        elif asking is None:
            found = [self._slots.problem or "it is starting"]
        else:
            done, _ = await asyncio.wait([asking], timeout=_READY_TIMEOUT)
            if not done:
                found = [f"the database does not answer: nothing within {_READY_TIMEOUT:g} s"]
            else:
                self._asking = None
                found = [] if asking.cancelled() else asking.result()
        since = self._away_since
        away = f" (away since {since.isoformat(timespec='seconds')})" if since else ""
        return [f"{self.name}: {problem}{away}" for problem in found]


async def _asked(loop: WorkerLoop) -> list[str]:
    return await loop.problems()


class Fleet:
    """All databases of one worker."""

    def __init__(
        self,
        served: Sequence[tuple[ServedDatabase, WorkerDefinition]],
        options: WorkerOptions,
        observers: Sequence[Observer],
        shutdown: Shutdown,
        health: Health,
    ) -> None:
        self._options = options
        self._shutdown = shutdown
        weights = [database.weight for database, _ in served]
        slots = SharedSlots(options.concurrency, weights, options.processes)
        self._loops = []
        for (database, definition), part in zip(served, slots.parts, strict=True):
            for handler in definition.handlers.all():
                check_payload(handler)
            lacks = database.queue.database.engine.lacks
            check_transactions(definition.handlers.all(), lacks, definition.address.url)
            self._loops.append(DatabaseLoop(database, definition, observers, shutdown, part))
        health.ready = self.problems

    async def work(self) -> None:
        """Until it is stopped, and every database has what is its own back."""
        named = _Named()
        _log.addFilter(named)
        limit = self._options.max_runtime
        timer = None
        if limit is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(limit.total_seconds(), self._shutdown.stop)
        try:
            async with asyncio.TaskGroup() as group:
                for one in self._loops:
                    group.create_task(one.work())
        except ExceptionGroup as errors:  # an option that is wrong for one of them
            raise errors.exceptions[0] from None
        finally:
            if timer is not None:
                timer.cancel()
            _log.removeFilter(named)

    async def problems(self) -> list[str]:
        """Ready while one database is served: a restart would not bring the others back."""
        found = await asyncio.gather(*(one.problems() for one in self._loops))
        every = [problem for problems in found for problem in problems]
        return every if all(found) else PartlyReady(every)
