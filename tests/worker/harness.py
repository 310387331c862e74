"""Workers in processes of their own, and the ledger that they write."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from laneway import Queue
from tests.place import Place

_ROOT = Path(__file__).parent.parent.parent


class LedgerLine(NamedTuple):
    what: str
    id: int
    fence: int
    attempt: int
    at: float


class WorkerProcesses:
    """A queue, a ledger, and the worker processes that were started on it."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.ledger = folder / "ledger"
        self.queue = Queue(place.url, schema=place.schema, upkeep_every=None)
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, mode: str, **settings: Any) -> subprocess.Popen[bytes]:
        settings |= {
            "url": self.place.url,
            "schema": self.place.schema,
            "ledger": str(self.ledger),
            "mode": mode,
        }
        command = [sys.executable, "-m", "tests.worker.worker_process", json.dumps(settings)]
        # A group of its own, for tests that signal all of it.
        worker = subprocess.Popen(command, cwd=_ROOT, start_new_session=True)
        self._workers.append(worker)
        return worker

    def lines(self, what: str | None = None) -> list[LedgerLine]:
        if not self.ledger.exists():
            return []
        found = []
        for text in self.ledger.read_text().splitlines():
            kind, id, fence, attempt, at = text.split()
            if what in (None, kind):
                found.append(LedgerLine(kind, int(id), int(fence), int(attempt), float(at)))
        return found

    def counts(self, what: str) -> Counter[int]:
        return Counter(line.id for line in self.lines(what))

    def outcomes(self, id: int) -> list[str]:
        return [entry.outcome for entry in self.queue.history(id)]

    def is_empty(self) -> bool:
        return not any(n.waiting + n.scheduled + n.leased for n in self.queue.stats())

    def close(self) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        self.queue.close()


@contextmanager
def worker_processes(place: Place, folder: Path) -> Iterator[WorkerProcesses]:
    found = WorkerProcesses(place, folder)
    found.queue.install()
    try:
        yield found
    finally:
        found.close()


def eventually(holds: Callable[[], object], seconds: float = 60) -> float:
    """Waits until it holds, and returns how long that took."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() < begun + seconds, "it did not happen in time"
        time.sleep(0.02)
    return time.monotonic() - begun


def kill(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait()


def stop(worker: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> int:
    worker.send_signal(number)
    return worker.wait(60)


def stop_group(worker: subprocess.Popen[bytes], number: signal.Signals) -> int:
    """As Ctrl-C in a terminal does, and systemd."""
    os.killpg(worker.pid, number)
    return worker.wait(60)


def is_alive(process: int) -> bool:
    """One that ended and that nobody has waited for is not alive: not every init waits."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
