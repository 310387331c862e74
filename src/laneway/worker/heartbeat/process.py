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
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from laneway.model import ProgressNote
from laneway.worker.clock import now

from .connection import HeartbeatConnection
from .lease_table import (
    ANSWER_AT,
    ANSWER_PART,
    FIRST,
    LOST,
    NUMBER,
    SHORT_LEASE,
    SLOT,
    Lease,
    call_timeout,
    table_size,
)

_log = logging.getLogger("laneway.worker.heartbeat")

_STOPPED = "Tt"


def main() -> None:
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
    with suppress(BrokenPipeError):  # the worker was killed, which the main loop is about to see
        os.write(sys.stdout.fileno(), b".")


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
