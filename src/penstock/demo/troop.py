"""The demo's worker processes, and what is done to them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from penstock import Queue

from .cast import LEASE, URL

WORKERS = ("worker-1", "worker-2", "worker-3")
_HELD = 4  # messages at which a worker is surely in the middle of something
_PATIENCE = 30.0
_SETTLED = 0.2  # seconds in which the server ends what a stopped worker had sent

Say = Callable[[str], None]


class Troop:
    """Starts the workers; all are gone at its end, whatever happens."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "penstock.demo.jobs"]
        # Not an argument: everybody on the machine may read those, and it may hold a password.
        place = {**os.environ, URL: url}
        self._processes = {name: subprocess.Popen([*command, name], env=place) for name in WORKERS}
        self._stopped_at: float | None = None
        self._left = ["kill", "freeze"]

    def make_trouble(self, queue: Queue, say: Say) -> None:
        """One step, if its time has come: kill one at work, freeze another past its lease."""
        if self._left and self._left[0] == "kill" and self._catches(queue, "worker-1"):
            self._left.pop(0)
            self._processes["worker-1"].send_signal(signal.SIGKILL)
            say("worker-1 was killed with SIGKILL in the middle of its work; nobody is told.")
        elif self._left and self._left[0] == "freeze" and self._catches(queue, "worker-2"):
            self._left.pop(0)
            self._stopped_at = time.monotonic()
            say("worker-2 was frozen with SIGSTOP while it held leases.")
        elif self._stopped_at is not None and self._was_missed(queue):
            self._stopped_at = None
            self._processes["worker-2"].send_signal(signal.SIGCONT)
            say("worker-2 goes on after its leases ran out: what it held is no longer its own.")

    @property
    def at_peace(self) -> bool:
        """No trouble is left to come."""
        return not self._left and self._stopped_at is None

    def dismiss(self) -> list[int]:
        """Asks those that live to stop in good order; answers their exit codes."""
        alive = [process for process in self._processes.values() if process.poll() is None]
        for process in alive:
            process.send_signal(signal.SIGTERM)
        return [process.wait(_PATIENCE) for process in alive]

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

    def _catches(self, queue: Queue, worker: str) -> bool:
        """Stops it in the middle of something: at a glance it may be, and have done it since."""
        if not _at_work(queue, worker):
            return False
        self._processes[worker].send_signal(signal.SIGSTOP)
        time.sleep(_SETTLED)
        if _at_work(queue, worker):
            return True
        self._processes[worker].send_signal(signal.SIGCONT)
        return False

    def _was_missed(self, queue: Queue) -> bool:
        """Its leases ran out and were taken back. (Frozen in a transaction on SQLite, it keeps
        everybody from writing, so that they cannot be: then enough is enough.)"""
        assert self._stopped_at is not None
        slept = time.monotonic() - self._stopped_at - LEASE.total_seconds()
        return slept > 3 or (slept > 0.5 and not _holds(queue, "worker-2"))


def _at_work(queue: Queue, worker: str) -> bool:
    return _holds(queue, worker) >= _HELD


def _holds(queue: Queue, worker: str) -> int:
    leased = queue.messages(state="leased", limit=1000)
    return sum(message.worker == worker for message in leased)
