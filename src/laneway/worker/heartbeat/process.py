"""The heartbeat process: ``python -m laneway.worker.heartbeat.process``, started by the worker.

It ends when its standard input does: the worker is gone, and its leases must expire. While the
worker is stopped (SIGSTOP, a debugger) it extends nothing, for the same reason.
"""

import asyncio
import json
import logging
import mmap
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from laneway.model import ProgressNote
from laneway.worker.clock import now
from laneway.worker.telemetry.logs import with_short_errors

if TYPE_CHECKING:
    from laneway.client.aio.queue import AsyncQueue
    from laneway.contract import Hold
    from laneway.model import ProgressNote

SLOT = struct.Struct("=qqqddqd")
WORKER_PART = struct.Struct("=qqqdd")
ANSWER_PART = struct.Struct("=qd")
ANSWER_AT = WORKER_PART.size
NUMBER = struct.Struct("=q")  # of used slots at the start of the table; of a lease in its slot
FIRST = 64  # where the slots begin

LOST = -1.0

SHORT_LEASE = 10.0
"""In seconds: loading a driver and connecting may take a third of a shorter lease."""

# Seconds. A new connection takes its time on a busy machine; an open one answers soon or never.
_CONNECT_TIMEOUT = 3.0
_ANSWER_TIMEOUT = 1.0


class Lease(NamedTuple):
    """The layout of the leases that a worker holds, in memory shared with its heartbeat process.

    A slot has two parts. The worker writes the first: number, message, fence, when the lease ends,
    and until when it may be extended. The heartbeat process answers in the second: for which
    number, and until when the lease is extended by the shared clock, or LOST. Reads may be torn: an
    answer counts only for the number that it names, a number is never reused, and a wrong pair of
    message and fence is refused by the fence."""

    slot: int
    number: int
    id: int
    fence: int
    until: float
    """When it ends, by the shared clock, as far as this table knows."""
    hold_until: float


def table_size(slots: int) -> int:
    return FIRST + slots * SLOT.size


def call_timeout(lease: float, connected: bool) -> float:
    """How long to wait for a call. When the network was silent and is back, a lease that was
    claimed since must outlive the call that is still waiting for its answer."""
    return max(lease / 4, _ANSWER_TIMEOUT if connected else _CONNECT_TIMEOUT)


# The heartbeat's connection to the database.

_log = logging.getLogger("laneway.worker.heartbeat")

CLOSE_TIMEOUT = 0.5
"""Seconds that a broken connection may take to close."""


class HeartbeatConnection:
    """Opened when it is first needed, and again after it was closed."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._client: AsyncQueue | None = None

    @property
    def is_open(self) -> bool:
        return self._client is not None

    async def connect(self) -> None:
        database = self._open().database
        await database.run(database.engine.schema.schema_version())

    async def hold(
        self, leases: list[Lease], seconds: float, notes: "Sequence[ProgressNote]"
    ) -> "list[Hold]":
        database = self._open().database
        held = [(lease.id, lease.fence) for lease in leases]
        return await database.run(
            database.engine.leases.hold(held, timedelta(seconds=seconds), notes)
        )

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await client.close()
            except Exception as error:  # expected of a broken connection
                _log.info("closing the connection failed: %s", error)

    def _open(self) -> "AsyncQueue":
        if self._client is None:
            from laneway.client.aio.queue import AsyncQueue

            self._client = AsyncQueue(
                self._settings["url"],
                schema=self._settings["schema"],
                pooler=self._settings["pooler"],
                pool_size=1,
                upkeep_every=None,
                call_timeout=self._settings["call_timeout"],
            )
        return self._client


_STOPPED = "Tt"
_LOGGED = (1800, 300)
"""Characters of a line's text and of its traceback; fewer if they take six bytes each."""


def main() -> None:
    os.set_blocking(sys.stdout.fileno(), False)
    logging.captureWarnings(True)
    logging.basicConfig(level=logging.INFO, handlers=[WorkersLog()])
    try:
        _extend()
    except Exception:  # the worker says that this process has ended, and this is why
        _log.exception("the heartbeat process failed")
        raise SystemExit(1) from None


def _extend() -> None:
    settings: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    table = HeldLeases(settings["memory"], settings["slots"])
    lease: float = settings["lease"]
    with asyncio.Runner() as runner:
        extender = Extender(settings, table)
        said = ProgressNotes()
        if lease < SHORT_LEASE:
            runner.run(extender.connect())
        _notify_worker()
        while not _is_gone(settings["worker"], lease / 6, said):
            if is_stopped(settings["worker"]):
                continue
            leases = list(table.leases())
            said.keep_only(leases)
            due = [held for held in leases if _is_due(held, lease)]
            if not due:
                continue
            if runner.run(extender.extend(due, said)):
                _notify_worker()
        runner.run(extender.close())


class ProgressNotes:
    """What handlers said about their progress, as the worker's lines tell it; the last counts."""

    def __init__(self) -> None:
        self._rest = b""
        self._by_lease: dict[tuple[int, int], ProgressNote] = {}

    def read(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            note = ProgressNote(*json.loads(line))
            self._by_lease[note.id, note.fence] = note

    def of(self, leases: list[Lease]) -> list[ProgressNote]:
        held = ((lease.id, lease.fence) for lease in leases)
        return [self._by_lease[key] for key in held if key in self._by_lease]

    def sent(self, notes: list[ProgressNote]) -> None:
        for note in notes:
            if self._by_lease.get((note.id, note.fence)) is note:
                del self._by_lease[note.id, note.fence]

    def keep_only(self, leases: list[Lease]) -> None:
        held = {(lease.id, lease.fence) for lease in leases}
        self._by_lease = {key: note for key, note in self._by_lease.items() if key in held}


class HeldLeases:
    """The shared table as the heartbeat process reads and answers it."""

    def __init__(self, descriptor: int, slots: int) -> None:
        self._memory = mmap.mmap(descriptor, table_size(slots))
        self._slots = slots

    def leases(self) -> Iterator[Lease]:
        """Those held now and not lost."""
        (used,) = NUMBER.unpack_from(self._memory, 0)
        for slot in range(min(used, self._slots)):
            number, id, fence, until, hold, answered, answer = SLOT.unpack_from(
                self._memory, FIRST + slot * SLOT.size
            )
            if number == 0:
                continue
            if answered == number:
                if answer == LOST:
                    continue
                until = max(until, answer)
            yield Lease(slot, number, id, fence, until, hold)

    def answer(self, lease: Lease, until: float) -> None:
        offset = FIRST + lease.slot * SLOT.size + ANSWER_AT
        ANSWER_PART.pack_into(self._memory, offset, lease.number, until)


class Extender:
    """Extends all leases in one call that waits for no lock: a row that its own handler has locked
    is tried again in the next round, and nobody else takes it meanwhile."""

    def __init__(self, settings: dict[str, Any], table: HeldLeases) -> None:
        self._table = table
        self._lease: float = settings["lease"]
        self._connection = HeartbeatConnection(settings)

    async def extend(self, held: list[Lease], said: ProgressNotes) -> bool:
        """Extends them and writes the answers; True if some are lost."""
        asked = now()
        notes = said.of(held)
        try:
            async with asyncio.timeout(call_timeout(self._lease, self._connection.is_open)):
                results = await self._connection.hold(held, self._lease, notes)
        except Exception as error:  # whatever it is, the leases are still there to be extended
            _log.warning("leases could not be extended: %s", str(error) or type(error).__name__)
            await self._connection.close()
            return False
        said.sent(notes)
        for lease, result in zip(held, results, strict=True):
            if result != "locked":
                self._table.answer(lease, LOST if result == "lost" else asked + self._lease)
        return "lost" in results

    async def connect(self) -> None:
        """Before it is needed."""
        try:
            await self._connection.connect()
        except Exception as error:  # tried again when it is needed
            _log.info("no connection yet: %s", error)
            await self._connection.close()

    async def close(self) -> None:
        await self._connection.close()


def _notify_worker() -> None:
    """The first byte means that this process is ready, any other that leases were lost."""
    _tell_worker(b".")


def _tell_worker(line: bytes) -> None:
    # A worker that was killed is what the main loop is about to see. One that does not read has
    # enough to read: nobody waits for it.
    with suppress(BrokenPipeError, BlockingIOError):
        os.write(sys.stdout.fileno(), line + b"\n")


class WorkersLog(logging.Handler):
    """Has the worker write the lines, with its own handlers and formatters."""

    def emit(self, record: logging.LogRecord) -> None:
        with_short_errors(record)
        line = b""
        for most in _LOGGED:
            texts = record.getMessage()[:most], (record.exc_text or "")[-most:]
            line = json.dumps([record.name, record.levelno, *texts]).encode()
            # A pipe takes lines of less than that whole or not at all.
            if len(line) < select.PIPE_BUF:
                break
        _tell_worker(line)


def is_stopped(process: int) -> bool:
    """Whether a signal or a debugger has stopped the process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return _is_stopped_by_ps(process)
    return stat[stat.rindex(")") + 2] in _STOPPED


def _is_stopped_by_ps(process: int) -> bool:
    command = ["ps", "-o", "state=", "-p", str(process)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip()[:1] in tuple(_STOPPED)


def _is_due(held: Lease, lease: float) -> bool:
    """A third of the lease is gone, and its handler has time left."""
    moment = now()
    return held.until - moment < lease * 2 / 3 and moment < held.hold_until


def _is_gone(worker: int, seconds: float, said: ProgressNotes) -> bool:
    """Waits for ``seconds``, or until the worker's end of the pipe is closed."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        readable, _, _ = select.select([0], [], [], left)
        if readable:
            received = os.read(0, 65536)
            if not received:
                return True
            said.read(received)
    return os.getppid() != worker


if __name__ == "__main__":
    main()
