"""The demo's worker processes, one of which is killed and one frozen."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from laneway import Queue

from .tenants import LEASE, URL

WORKERS = ("worker-1", "worker-2", "worker-3")
_HELD = 4  # leases from which on a worker counts as busy
_STOP_TIMEOUT = 30.0
_SETTLE_TIME = 0.2  # seconds for the server to finish what a stopped worker had sent

Print = Callable[[str], None]


class WorkerProcesses:
    """Starts the workers, and ends all of them with the block."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "laneway.dev.demo.jobs"]
        # Not an argument: other users can read those, and the URL may hold a password.
        environment = {**os.environ, URL: url}
        self._processes = {
            name: subprocess.Popen([*command, name], env=environment) for name in WORKERS
        }
        self._stopped_at: float | None = None
        self._pending_faults = ["kill", "freeze"]

    def inject_fault(self, queue: Queue, say: Print) -> None:
        """One step, when possible: kill a busy worker; freeze another until its leases expire."""
        fault = self._pending_faults[0] if self._pending_faults else None
        if fault == "kill" and self._freeze_while_busy(queue, "worker-1"):
            self._pending_faults.pop(0)
            self._processes["worker-1"].send_signal(signal.SIGKILL)
            say("Killed worker-1 with SIGKILL while it was handling messages.")
        elif fault == "freeze" and self._freeze_while_busy(queue, "worker-2"):
            self._pending_faults.pop(0)
            self._stopped_at = time.monotonic()
            say("Froze worker-2 with SIGSTOP while it held leases.")
        elif self._stopped_at is not None and self._leases_expired(queue):
            self._stopped_at = None
            self._processes["worker-2"].send_signal(signal.SIGCONT)
            say("Resumed worker-2 after its leases expired: it no longer owns those messages.")

    @property
    def is_done(self) -> bool:
        """Whether all faults are over."""
        return not self._pending_faults and self._stopped_at is None

    def stop(self) -> list[int]:
        """Stops the remaining workers gracefully; returns their exit codes."""
        alive = [process for process in self._processes.values() if process.poll() is None]
        for process in alive:
            process.send_signal(signal.SIGTERM)
        return [process.wait(_STOP_TIMEOUT) for process in alive]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def _freeze_while_busy(self, queue: Queue, worker: str) -> bool:
        """Freezes the worker and looks again: what it held at first it may have completed since."""
        if not _is_busy(queue, worker):
            return False
        self._processes[worker].send_signal(signal.SIGSTOP)
        time.sleep(_SETTLE_TIME)
        if _is_busy(queue, worker):
            return True
        self._processes[worker].send_signal(signal.SIGCONT)
        return False

    def _leases_expired(self, queue: Queue) -> bool:
        """Its leases expired and were taken back. (Frozen in a transaction on SQLite it blocks all
        writers, so that they cannot be: then it is resumed after three seconds.)"""
        assert self._stopped_at is not None
        slept = time.monotonic() - self._stopped_at - LEASE.total_seconds()
        return slept > 3 or (slept > 0.5 and not _holds(queue, "worker-2"))


def _is_busy(queue: Queue, worker: str) -> bool:
    return _holds(queue, worker) >= _HELD


def _holds(queue: Queue, worker: str) -> int:
    leased = queue.messages(state="leased", limit=1000)
    return sum(message.worker == worker for message in leased)
