"""The worker's side of the heartbeat: which leases to extend, and the process that does it.

A process, because a handler that holds the interpreter's lock stops every thread of the worker;
started with the worker, because such a handler would also prevent a later start. It sleeps most of
the time, loads no driver and opens no connection until a lease is a third gone. See docs/decisions.
"""

import asyncio
import json
import logging
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress

from laneway.client.shared.options import ClientAddress
from laneway.worker.clock import Backoff, now
from laneway.worker.job import Job

from .process import (
    ANSWER_AT,
    ANSWER_PART,
    FIRST,
    LOST,
    NUMBER,
    SHORT_LEASE,
    SLOT,
    WORKER_PART,
    call_timeout,
    table_size,
)

_log = logging.getLogger("laneway.worker")

_NOTE_DELAY = 0.1  # seconds, in which later notes replace earlier ones
_MIN_LIFETIME = 1.0  # seconds: a process that dies later than that did not fail at its start


class Heartbeat:
    """Holds up to ``slots`` leases; ``lost`` is called with the jobs whose lease was lost. Without
    ``by_process`` nothing is extended: nobody takes back what runs out."""

    def __init__(
        self,
        address: ClientAddress,
        lease: float,
        slots: int,
        lost: Callable[[Job], None],
        *,
        by_process: bool = True,
    ) -> None:
        self._address = address
        self._lease = lease
        self._slots = slots
        self._lost = lost
        self._by_process = by_process
        self._file = tempfile.TemporaryFile(prefix="laneway-heartbeat-")  # noqa: SIM115
        os.ftruncate(self._file.fileno(), table_size(slots))
        self._table = mmap.mmap(self._file.fileno(), table_size(slots))
        self._free = list(range(slots - 1, -1, -1))
        self._used = 0
        self._number = 0
        self._numbers: dict[int, int] = {}
        self._held: dict[int, Job] = {}
        self._noted: set[Job] = set()
        self._rest = b""
        self._ready = asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._backoff = Backoff(0.1, 10.0)

    def hold(self, job: Job, hold_until: float) -> None:
        """Extends the lease from now on, until ``hold_until`` at the latest."""
        slot = self._free.pop()
        if slot >= self._used:
            self._used = slot + 1
            NUMBER.pack_into(self._table, 0, self._used)
        self._number += 1
        job.slot = slot
        self._numbers[slot] = self._number
        self._held[slot] = job
        self.bound(job, hold_until)

    def bound(self, job: Job, hold_until: float) -> None:
        """Changes until when the lease is extended, if it is held."""
        if job.slot is not None:
            WORKER_PART.pack_into(
                self._table,
                _offset(job.slot),
                self._numbers[job.slot],
                job.id,
                job.fence,
                job.deadline,
                hold_until,
            )

    def release(self, job: Job) -> None:
        """Stops extending the lease; the job's deadline is what was reached."""
        self.refresh(job)
        slot, job.slot = job.slot, None
        if slot is not None:
            NUMBER.pack_into(self._table, _offset(slot), 0)
            del self._held[slot], self._numbers[slot]
            self._free.append(slot)

    def refresh(self, job: Job) -> None:
        """Updates the job's deadline from what the process has extended."""
        if job.slot is None:
            return
        number, until = self._answer(job.slot)
        if number == self._numbers[job.slot] and until != LOST:
            job.deadline = max(job.deadline, until)

    def note(self, job: Job) -> None:
        """Has what the handler said about its progress go along with the next extension."""
        if not self._noted:
            asyncio.get_running_loop().call_later(_NOTE_DELAY, self._send_notes)
        self._noted.add(job)

    def _send_notes(self) -> None:
        """Lines of less than PIPE_BUF are written whole or not at all; a process that does not read
        misses some, and nobody waits for it."""
        noted, self._noted = self._noted, set()
        process = self._process
        if process is None or process.stdin is None:
            return
        for job in noted:
            if job.slot is not None and job.progress_noted is not None:
                line = json.dumps([job.id, job.fence, *job.progress_noted], ensure_ascii=False)
                with suppress(OSError):
                    os.write(process.stdin.fileno(), line.encode() + b"\n")

    def _answer(self, slot: int) -> tuple[int, float]:
        """The number that the process answered for last, and until when."""
        return ANSWER_PART.unpack_from(self._table, _offset(slot) + ANSWER_AT)

    def start(self) -> None:
        """Starts the process; its arguments hold no password that other users could list."""
        if not self._by_process:
            return
        command = [sys.executable, "-m", "laneway.worker.heartbeat.process"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[self._file.fileno()],
            start_new_session=True,  # Ctrl-C is for the worker, which still needs its leases then
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._process = process
        self._started_at = now()
        self._watch(process)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has died already: the reader is about to see that
            process.stdin.write(json.dumps(self._settings()).encode() + b"\n")
            process.stdin.flush()
            os.set_blocking(process.stdin.fileno(), False)

    async def until_ready(self) -> None:
        """Short leases are not claimed before they can be extended."""
        if self._by_process and self._lease < SHORT_LEASE:
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
        self._file.close()

    def _settings(self) -> dict[str, object]:
        address = self._address
        return {
            "url": address.url,
            "schema": address.schema,
            "pooler": address.pooler,
            "lease": self._lease,
            "call_timeout": call_timeout(self._lease, connected=True),
            "memory": self._file.fileno(),
            "slots": self._slots,
            "worker": os.getpid(),
        }

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        asyncio.get_running_loop().add_reader(process.stdout.fileno(), self._read, process)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """A dot means that the process is ready or that leases were lost, the end of the stream
        that it died. Any other line is for the log."""
        assert process.stdout is not None
        received = process.stdout.read()
        *lines, self._rest = (self._rest + (received or b"")).split(b"\n")
        for line in lines:
            if line == b".":
                self._ready.set()
            else:
                _write_log(line)
        if received == b"":
            self._replace(process)
        for slot, job in list(self._held.items()):
            number, until = self._answer(slot)
            if number == self._numbers[slot] and until == LOST:
                self._lost(job)

    def _replace(self, process: subprocess.Popen[bytes]) -> None:
        _unwatch(process)
        _end(process)
        self._process = None
        self._rest = b""
        _log.error("the heartbeat process exited (%s); starting another", process.returncode)
        if now() - self._started_at >= _MIN_LIFETIME:
            self._backoff.reset()
        self._restart_later()

    def _restart_later(self) -> None:
        asyncio.get_running_loop().call_later(self._backoff.next(), self._restart)

    def _restart(self) -> None:
        if self._process is not None or self._file.closed:
            return
        try:
            self.start()
        except OSError as error:  # out of memory, processes or files: that may pass
            _log.error("cannot start the heartbeat process, trying again: %s", error)
            self._restart_later()


def _write_log(line: bytes) -> None:
    """A line of the heartbeat process, by the handlers of this one."""
    name, level, text, trace = json.loads(line)
    log = logging.getLogger(name)
    if log.isEnabledFor(level):
        log.log(level, "%s%s", text, f"\n{trace}" if trace else "")


def _offset(slot: int) -> int:
    return FIRST + slot * SLOT.size


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
