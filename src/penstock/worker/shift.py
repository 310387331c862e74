"""A shift: one run of a worker, from its first claim to its last write."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from penstock.client.async_queue import AsyncQueue
from penstock.contract import BATCH
from penstock.drivers.choice import open_bell
from penstock.errors import ConnectionUnavailable, PenstockError, SchemaTooOld
from penstock.model import Answer
from penstock.plan import Plan

from .backoff import Backoff
from .clock import now
from .dozing import Doze
from .kit import Kit
from .pace import MOST_AHEAD
from .parting import PARTING, cancel_all, part
from .stopping import CutOff, Stopping, cut_off_by
from .upkeep import keep_up
from .watching import Watcher
from .workshop import Workshop

T = TypeVar("T")

_log = logging.getLogger("penstock.worker")

_MOST_UNSETTLED = 2000
# Seconds that a message waits for its handler here before others may have it.
_LONGEST_IN_LINE = 1.0
# Seconds for what a handler does after it was cancelled, and for the last writes.
_LAST_WORDS = 5.0
_LAST_FLUSH = 10.0
_LAST_CLAIM = 5.0
_PROBE = 3.0
_SILENCE = 30.0


class Shift:
    """Others may stop it by ``stopping``, at any time."""

    def __init__(
        self,
        client: AsyncQueue,
        kit: Kit,
        watchers: Sequence[Watcher],
        stopping: Stopping,
    ) -> None:
        self._client = client
        self._watchers = watchers
        self._core = client._core
        self._options = kit.options
        self._kinds = kit.handlers.kinds()
        self._stopping = stopping
        self._room = asyncio.Event()
        self._blocked = False
        self._full = False
        self._last: asyncio.Task[None] | None = None
        self._claimed = 0
        self.answered_at: float | None = None
        """When a claim was last answered, by our own clock."""
        most = kit.options.concurrency + _MOST_UNSETTLED + 2 * MOST_AHEAD
        self._shop = Workshop(client, kit, most, watchers, self._room.set, self._note_freed)
        self._crew, self._desk, self._pulse = self._shop.crew, self._shop.desk, self._shop.pulse

    async def work(self) -> None:
        """Until it is stopped; all that was claimed is settled or given back by then."""
        self._pulse.start()
        try:
            async with cut_off_by(self._stopping.wanted):
                channel = await self._prepare()
            await self._work_by(channel)
        except CutOff:
            _log.info("stopped before the database had answered")
        finally:
            await self._shop.close()

    async def _prepare(self) -> str | None:
        """What the bell listens to, once a schema that we know is there."""
        version = await self._patiently(self._core.engine.schema_version)
        if problem := self._schema_problem(version):
            raise SchemaTooOld(problem)
        channel = await self._patiently(self._core.engine.bell)
        await self._pulse.until_ready()
        self._introduce()
        return channel

    def _introduce(self) -> None:
        kinds = ", ".join(self._kinds) or "every kind"
        queues, most = ", ".join(self._options.queues), self._options.concurrency
        _log.info("%s serves %s: %s; %d at once", self._client.worker, queues, kinds, most)

    async def problems(self) -> list[str]:
        """What keeps this shift from working now."""
        if self._stopping.wanted.is_set():
            return ["the worker is stopping"]
        problems = []
        try:
            async with asyncio.timeout(_PROBE):
                version = await self._core.run(self._core.engine.schema_version())
            if problem := self._schema_problem(version):
                problems.append(problem)
        except (PenstockError, TimeoutError) as error:
            problems.append(f"the database does not answer: {error}")
        if self.answered_at is None:
            problems.append("no claim has been answered yet")
        elif not self._full and now() - self.answered_at > _SILENCE:
            problems.append(f"no claim was answered for {now() - self.answered_at:.0f} s")
        return problems

    def _schema_problem(self, version: int) -> str | None:
        newest = self._core.engine.newest_version
        if version >= newest:
            return None
        return f"the schema has version {version}, this Penstock needs {newest}: upgrade it"

    async def _work_by(self, channel: str | None) -> None:
        address, queues = self._client._address, self._options.queues
        wanted = frozenset(queues)
        self._bell = open_bell(address.url, channel=channel, wanted=wanted, pooler=address.pooler)
        self._doze = Doze(self._core, self._bell, queues, self._client.worker)
        helpers = [
            asyncio.create_task(keep_up(self._client)),
            asyncio.create_task(self._mind_the_line()),
        ]
        writing = asyncio.create_task(self._desk.work())
        claims = asyncio.create_task(self._claim_until_stopped())
        try:
            await self._until_stopped([claims, writing, *helpers])
            await self._wind_up(claims)
        except asyncio.CancelledError:
            # Whoever cancels us does not wait for handlers, but their messages are given back.
            self._stopping.stop_now()
            await self._wind_up(claims)
            raise
        except Exception:
            # A part of us has failed: handlers end as after a stop, and their outcomes are written.
            if writing.done():
                writing = asyncio.create_task(self._desk.work())
            self._stopping.stop()
            await self._wind_up(claims)
            raise
        finally:
            await cancel_all([claims, writing, *helpers], PARTING)
            if self._last is not None:
                self._last.cancel()
            await part(self._doze.close(), PARTING)
            await part(self._bell.close(), PARTING)

    async def _until_stopped(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """None of the tasks ends by itself: one that does has failed, and so have we."""
        stopping = asyncio.create_task(self._stopping.wanted.wait())
        limit = self._options.stop_in
        seconds = None if limit is None else limit.total_seconds()
        try:
            await asyncio.wait([stopping, *tasks], timeout=seconds, return_when="FIRST_COMPLETED")
        finally:
            stopping.cancel()
        for task in tasks:
            if task.done():
                task.result()
        self._stopping.stop()

    async def _wind_up(self, claims: asyncio.Task[None]) -> None:
        """What was claimed a moment ago is given back too, so a claim under way is waited for."""
        hurry = asyncio.create_task(self._stopping.hurry.wait())
        self._room.set()
        self._bell.ring()
        try:
            await asyncio.wait([claims], timeout=_LAST_CLAIM)
            self._crew.clear_line()
            idle = asyncio.create_task(self._crew.idle())
            grace = self._options.grace.total_seconds()
            await asyncio.wait([idle, hurry], timeout=grace, return_when="FIRST_COMPLETED")
            self._crew.interrupt_all("shutdown")
            await asyncio.wait([idle], timeout=_LAST_WORDS)
            idle.cancel()
            self._crew.forsake_all()
        finally:
            hurry.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_FLUSH):
                await self._desk.empty()
        if self._desk.unsettled:
            _log.error("%d outcomes could not be written", self._desk.unsettled)

    # The claim loop.

    async def _claim_until_stopped(self) -> None:
        backoff = Backoff(0.1, 5.0)
        while not self._stopping.wanted.is_set():
            want = self._want()
            if want < 1:
                self._full = True
                self._room.clear()
                await self._room.wait()
                self._full = False
                continue
            try:
                await self._claim(want)
            except PenstockError as error:
                _log.warning("the claim failed and is tried again: %s", error)
                await self._bell.wait(backoff.next())
            else:
                backoff.reset()

    def _want(self) -> int:
        if self._desk.unsettled >= _MOST_UNSETTLED:
            return 0
        want = min(self._crew.room(), BATCH)
        if self._options.stop_after is None:
            return want
        left = self._options.stop_after - self._claimed
        if left <= 0 and self._last is None:
            self._last = asyncio.create_task(self._stop_when_idle())
        return min(want, left)

    async def _stop_when_idle(self) -> None:
        await self._crew.idle()
        if self._claimed < (self._options.stop_after or 0):  # some were given back from the line
            self._last = None
            self._room.set()
        else:
            self._stopping.stop()

    async def _mind_the_line(self) -> None:
        while True:
            await asyncio.sleep(_LONGEST_IN_LINE / 2)
            self._claimed -= self._crew.clear_line_of(_LONGEST_IN_LINE)

    async def _claim(self, want: int) -> None:
        options = self._options
        asked, was_idle = now(), self._is_idle()
        taken = await self._core.run(
            self._core.engine.claim(options.queues, want, options.lease, self._client.worker)
        )
        self.answered_at = now()
        for watcher in self._watchers:
            watcher.claimed(len(taken.rows), taken.answer, self.answered_at - asked)
        self._blocked = taken.answer is Answer.BLOCKED
        jobs = self._shop.jobs(taken, asked + options.lease.total_seconds())
        if jobs and self._stopping.wanted.is_set():
            self._crew.give_back(jobs)
        elif jobs:
            self._claimed += len(jobs)
            self._crew.take(jobs)
            await self._doze.found(len(jobs) >= want)
        elif options.until_empty and was_idle and taken.answer is not Answer.BUSY:
            self._stopping.stop()
        elif not self._stopping.wanted.is_set():
            await self._doze.wait(taken.answer, taken.look_again)

    def _is_idle(self) -> bool:
        return not self._crew.running and not self._desk.unsettled

    # What others tell.

    def _note_freed(self) -> None:
        self._room.set()
        if self._blocked or self._options.until_empty:
            self._bell.ring()

    async def _patiently(self, plan: Callable[[], Plan[T]]) -> T:
        """A database that is away when we start may come back; a missing schema is an error."""
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                return await self._core.run(plan())
            except ConnectionUnavailable as error:
                _log.warning("waiting for the database: %s", error)
                await backoff.sleep()
