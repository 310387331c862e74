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

from .clock import now
from .pulse_line import Line
from .pulse_table import LOST, SHORT_LEASE, Lease, PulseTable

_log = logging.getLogger("penstock.worker.pulse")

_STOPPED = "Tt"
# Seconds. A new connection takes its time on a busy machine; one that is there answers soon or
# never.
_CONNECTING = 3.0
_ANSWERING = 1.0


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
    """Extends all leases in one call, which waits for none of them: a row that its own handler has
    locked is tried again in the next round, and nobody else takes it meanwhile."""

    def __init__(self, terms: dict[str, Any], table: PulseTable) -> None:
        self._table = table
        self._lease: float = terms["lease"]
        self._line = Line(terms)

    async def extend(self, held: list[Lease]) -> bool:
        """Extends them and writes the answers; says whether some are lost."""
        asked = now()
        try:
            async with asyncio.timeout(patience(self._lease, self._line.is_open)):
                answers = await self._line.hold(held, self._lease)
        except Exception as error:  # whatever it is, the leases are still there to be extended
            _log.warning("leases could not be extended: %s", str(error) or type(error).__name__)
            await self._line.close()
            return False
        for lease, answer in zip(held, answers, strict=True):
            if answer != "locked":
                until = LOST if answer == "lost" else asked + self._lease
                self._table.tell(lease.slot, lease.number, until)
        return "lost" in answers

    async def warm(self) -> None:
        """Connects before it is needed."""
        try:
            await self._line.connect()
        except Exception as error:  # it is tried again when it is needed
            _log.info("no connection yet: %s", error)
            await self._line.close()

    async def close(self) -> None:
        await self._line.close()


def patience(lease: float, connected: bool) -> float:
    """For how long a call is waited for. When the network was silent and is back, a lease that was
    claimed since must outlive the call that is still waiting for its answer."""
    return max(lease / 4, _ANSWERING if connected else _CONNECTING)


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
    """A third of it is gone, and its handler's time is not up."""
    moment = now()
    return held.until - moment < lease * 2 / 3 and moment < held.hold_until


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
