"""The pulse process: ``python -m penstock.worker.pulse_process``, started by the worker.

It ends when its standard input does: the worker is gone, and its leases must run out. While the
worker is stopped (SIGSTOP, a debugger) it does nothing, for the same reason.
"""

import asyncio
import json
import logging
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.errors import DatabaseFailed, PenstockError

from .clock import now
from .pulse_line import Line
from .pulse_table import LOST, SHORT_LEASE, Lease, PulseTable

_log = logging.getLogger("penstock.worker.pulse")

_STOPPED = "Tt"
# Seconds. A new connection takes its time on a busy machine; one that is there answers soon or
# never.
_CONNECTING = 3.0
_ANSWERING = 1.0
# For a row that may be locked: one that is free answers at once, and whoever is in line when the
# lease ends in the transaction that holds the lock is noted in the history as a stale holder.
_FREE_ROW = 0.1
_CALLS_APART = 8


def main() -> None:
    terms: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    table = PulseTable(terms["memory"], terms["slots"])
    lease: float = terms["lease"]
    with asyncio.Runner() as runner:
        extender = Extender(terms, table)
        if lease < SHORT_LEASE:
            runner.run(extender.warm())
        _tell_worker()
        while not _is_gone(terms["worker"], lease / 6):
            if is_stopped(terms["worker"]):
                continue
            due = [held for held in table.leases() if _is_due(held, lease)]
            if not due:
                continue
            if runner.run(extender.extend(due)):
                _tell_worker()
        runner.run(extender.close())


class Extender:
    """Extends all leases in one call. Those whose row may be locked by a transaction have a call
    each, so that none of them costs another its lease."""

    def __init__(self, terms: dict[str, Any], table: PulseTable) -> None:
        self._table = table
        self._lease: float = terms["lease"]
        self._together = Line(terms, 1)
        self._apart = Line(terms, _CALLS_APART)
        self._turns = asyncio.Semaphore(_CALLS_APART)
        self._locked: set[int] = set()
        """Numbers of those that were there when last looked for, and could not be extended."""

    async def extend(self, held: list[Lease]) -> bool:
        """Extends them and writes the answers; says whether some are lost."""
        apart = {one for one in held if one.apart or one.number in self._locked}
        together = [one for one in held if one not in apart]
        lost = False
        if together:
            try:
                lost = await self._extend_together(together)
            except (TimeoutError, DatabaseFailed):
                apart.update(together)
        return await self._extend_apart(apart) or lost

    async def warm(self) -> None:
        """Connects before it is needed."""
        try:
            await self._together.connect()
        except Exception as error:  # it is tried again when it is needed
            _log.info("no connection yet: %s", error)
            await self._together.close()

    async def close(self) -> None:
        await self._together.close()
        await self._apart.close()

    async def _extend_together(self, leases: list[Lease]) -> bool:
        """Raises if one of them may be what holds up the others."""
        try:
            async with asyncio.timeout(patience(self._lease, self._together.is_open)):
                return await self._extend_by(self._together, leases)
        except Exception as error:  # whatever it is, the leases are still there to be extended
            _tell_failure(error)
            await self._together.close()
            if isinstance(error, TimeoutError | DatabaseFailed):
                raise
            return False

    async def _extend_apart(self, leases: set[Lease]) -> bool:
        self._locked = set()
        if not leases:
            return False
        answers: dict[int, bool] = {}
        try:
            async with asyncio.timeout(patience_apart(self._lease)):
                await self._apart.connect()
                await asyncio.gather(*(self._extend_one(one, answers) for one in leases))
        except Exception as error:
            _tell_failure(error)
        if not answers and not self._locked:  # the line is silent: another may not be
            await self._apart.close()
        return any(answers.values())

    async def _extend_one(self, lease: Lease, answers: dict[int, bool]) -> None:
        async with self._turns:
            with suppress(TimeoutError, PenstockError):
                async with asyncio.timeout(_FREE_ROW):
                    answers[lease.number] = await self._extend_if_held(lease)

    async def _extend_if_held(self, lease: Lease) -> bool:
        """Looks first: whoever extends what ended in its handler's transaction would be noted as a
        stale holder."""
        if not await self._apart.holds(lease):
            self._table.tell(lease.slot, lease.number, LOST)
            return True
        self._locked.add(lease.number)
        lost = await self._extend_by(self._apart, [lease])
        self._locked.discard(lease.number)
        return lost

    async def _extend_by(self, line: Line, leases: list[Lease]) -> bool:
        asked = now()
        answers = await line.extend(leases, self._lease)
        for lease, lost in zip(leases, answers, strict=True):
            self._table.tell(lease.slot, lease.number, LOST if lost else asked + self._lease)
        return any(answers)


def _tell_failure(error: Exception) -> None:
    _log.warning("leases could not be extended: %s", str(error) or type(error).__name__)


def patience(lease: float, connected: bool) -> float:
    """For how long one call is waited for. When the network was silent and is back, a lease that
    was claimed since must outlive the call that is still waiting for its answer; and what is left
    must do for another call, if a row of the first was locked."""
    return max(lease / 4, _ANSWERING if connected else _CONNECTING)


def patience_apart(lease: float) -> float:
    """The same for all calls for single leases together."""
    return lease / 6


def _tell_worker() -> None:
    """The first byte says that we are ready, any other that leases were lost."""
    with suppress(BrokenPipeError):  # it was killed, and we are about to see it
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
    """A third of it is gone, and its handler's time is not up. Later if its row may be locked:
    while it is, nobody else takes it either."""
    moment = now()
    left = lease / 2 if held.apart else lease * 2 / 3
    return held.until - moment < left and moment < held.hold_until


def _is_gone(worker: int, seconds: float) -> bool:
    """Waits so long, or until the worker's end of the pipe is closed."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        readable, _, _ = select.select([0], [], [], left)
        if readable and not os.read(0, 1024):
            return True
    return os.getppid() != worker


if __name__ == "__main__":
    main()
