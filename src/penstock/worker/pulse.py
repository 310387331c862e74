"""The pulse: a process beside the worker that extends the leases the worker holds.

A process, because a handler that holds the interpreter's lock stops every thread of ours; started
with the worker, because such a handler would not let us start it later. It sleeps in between, loads
no driver and opens no connection until a lease is a third gone. See docs/decisions.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress

from penstock.client.options import Address

from .backoff import Backoff
from .clock import now
from .job import Job
from .pulse_table import LOST, SHORT_LEASE, PulseTable, size

_log = logging.getLogger("penstock.worker")

_LIVED = 1.0  # seconds: one that dies after that did not fail at its start


class Pulse:
    """Holds up to ``slots`` leases; ``lost`` is told of those that were taken away."""

    def __init__(
        self, address: Address, lease: float, slots: int, lost: Callable[[Job], None]
    ) -> None:
        self._address = address
        self._lease = lease
        self._slots = slots
        self._lost = lost
        self._memory = tempfile.TemporaryFile(prefix="penstock-pulse-")  # noqa: SIM115
        os.ftruncate(self._memory.fileno(), size(slots))
        self._table = PulseTable(self._memory.fileno(), slots)
        self._free = list(range(slots - 1, -1, -1))
        self._used = 0
        self._number = 0
        self._numbers: dict[int, int] = {}
        self._held: dict[int, Job] = {}
        self._ready = asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._backoff = Backoff(0.1, 10.0)

    def hold(self, job: Job, hold_until: float) -> None:
        """From now on the lease is kept until ``hold_until`` at the latest."""
        slot = self._free.pop()
        if slot >= self._used:
            self._used = slot + 1
            self._table.set_used(self._used)
        self._number += 1
        job.slot = slot
        self._numbers[slot] = self._number
        self._held[slot] = job
        self.bound(job, hold_until)

    def bound(self, job: Job, hold_until: float) -> None:
        """If it is kept, then until ``hold_until`` at the latest."""
        if job.slot is not None:
            number = self._numbers[job.slot]
            self._table.write(job.slot, number, job.id, job.fence, job.deadline, hold_until)

    def release(self, job: Job) -> None:
        """No longer kept; its deadline is what was reached."""
        self.refresh(job)
        slot, job.slot = job.slot, None
        if slot is not None:
            self._table.clear(slot)
            del self._held[slot], self._numbers[slot]
            self._free.append(slot)

    def refresh(self, job: Job) -> None:
        """Brings the job's deadline up to what the pulse has reached."""
        if job.slot is None:
            return
        number, until = self._table.answer(job.slot)
        if number == self._numbers[job.slot] and until != LOST:
            job.deadline = max(job.deadline, until)

    def start(self) -> None:
        """Starts the process. Whoever runs a debugger on it finds no password in its arguments."""
        command = [sys.executable, "-m", "penstock.worker.pulse_process"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[self._memory.fileno()],
            start_new_session=True,  # a Ctrl-C is for the worker: it still needs its leases then
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._process = process
        self._started_at = now()
        self._watch(process)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has died already, and we are about to hear it
            process.stdin.write(json.dumps(self._terms()).encode() + b"\n")
            process.stdin.flush()

    async def until_ready(self) -> None:
        """Short leases are not claimed before somebody can extend them."""
        if self._lease < SHORT_LEASE:
            with suppress(TimeoutError):
                async with asyncio.timeout(SHORT_LEASE):
                    await self._ready.wait()

    def close(self) -> None:
        """Ends the process and forgets the leases."""
        process, self._process = self._process, None
        if process is not None:
            _unwatch(process)
            _end(process)
        self._table.close()
        self._memory.close()

    def _terms(self) -> dict[str, object]:
        address = self._address
        return {
            "url": address.url,
            "schema": address.schema,
            "pooler": address.pooler,
            "lease": self._lease,
            "memory": self._memory.fileno(),
            "slots": self._slots,
            "worker": os.getpid(),
        }

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        asyncio.get_running_loop().add_reader(process.stdout.fileno(), self._hear, process)

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """A byte says that it is ready or that leases were lost, an end that it has died."""
        assert process.stdout is not None
        heard = process.stdout.read()
        self._ready.set()
        if heard == b"":
            self._replace(process)
        for slot, job in list(self._held.items()):
            number, until = self._table.answer(slot)
            if number == self._numbers[slot] and until == LOST:
                self._lost(job)

    def _replace(self, process: subprocess.Popen[bytes]) -> None:
        _unwatch(process)
        _end(process)
        self._process = None
        _log.error("the pulse process ended (%s), another starts", process.returncode)
        if now() - self._started_at >= _LIVED:
            self._backoff.reset()
        self._restart_later()

    def _restart_later(self) -> None:
        asyncio.get_running_loop().call_later(self._backoff.next(), self._restart)

    def _restart(self) -> None:
        if self._process is not None or self._memory.closed:
            return
        try:
            self.start()
        except OSError as error:  # no memory, no process or file to be had: that may pass
            _log.error("the pulse process cannot start, it is tried again: %s", error)
            self._restart_later()


def _unwatch(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    asyncio.get_running_loop().remove_reader(process.stdout.fileno())


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None and process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    process.kill()
    process.wait()
    process.stdout.close()
