"""How soon work goes on after a worker was killed, a server came back, or a frozen worker woke up:
`python -m benchmarks.recovery`.

Two worker processes, one message at a time, so that the other one has nothing else to do: what
is measured is the recovery, not the queue before it. Back-off is set to zero; add your own.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psycopg

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres

from .bench import SETTINGS, say
from .report import Table, show

LEASE = 2.0
HEARTBEAT = LEASE / 3
TIMEOUT = 60.0
_NOTHING = timedelta(0)
_SOON = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Size:
    kills: int = 40
    returns: int = 10
    freezes: int = 15


QUICK = Size(3, 2, 2)


class LedgerLine(NamedTuple):
    what: str
    pid: int
    id: int
    attempt: int
    at: float


class Scene:
    """The server, its queue, two workers and their ledger."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server = server
        self._url = server.create_database("recovery")
        with Queue(self._url) as queue:
            queue.install()
            queue.configure(backoff_initial=_NOTHING, backoff_max=_NOTHING)
        self._ledger = folder / "ledger"
        self._ledger.touch()
        self.workers = [self.start(), self.start()]

    def start(self) -> "subprocess.Popen[bytes]":
        place = {**os.environ, "RECOVERY_URL": self._url, "RECOVERY_LEDGER": str(self._ledger)}
        command = [sys.executable, "-m", "benchmarks.recovery_worker", str(LEASE)]
        worker = subprocess.Popen(command, env=place)
        self.line(lambda line: line.what == "ready" and line.pid == worker.pid)
        return worker

    def line(self, fits: Callable[[LedgerLine], bool]) -> LedgerLine:
        """Waits for the first line that fits."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            for line in self.lines():
                if fits(line):
                    return line
            time.sleep(0.005)
        raise RuntimeError("it did not happen in time")

    def lines(self) -> list[LedgerLine]:
        found = []
        for text in self._ledger.read_text().splitlines():
            what, pid, id, attempt, at = text.split()
            found.append(LedgerLine(what, int(pid), int(id), int(attempt), float(at)))
        return found

    def publish(self, delay: timedelta = _NOTHING) -> int:
        """With a client of its own: the last one may have lost its server."""
        with Queue(self._url) as queue:
            return queue.publish(None, delay=delay).id or 0

    def begin_one(self) -> LedgerLine:
        """A message whose first attempt runs until its worker is killed."""
        id = self.publish()
        line = self.line(lambda line: line.what == "start" and line.id == id)
        time.sleep(LEASE * (0.2 + (line.id % 8) / 10))  # at some point between two heartbeats
        return line

    def worker(self, pid: int) -> "subprocess.Popen[bytes]":
        return next(worker for worker in self.workers if worker.pid == pid)

    def close(self) -> None:
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
            worker.kill()
            worker.wait()


def killed(scene: Scene) -> float:
    """From SIGKILL until another worker's handler has the message."""
    first = scene.begin_one()
    worker = scene.worker(first.pid)
    at = time.monotonic()
    worker.kill()
    again = scene.line(lambda line: line.what == "start" and line[2:4] == (first.id, 2))
    worker.wait()
    scene.workers.remove(worker)
    scene.workers.append(scene.start())
    return again.at - at


def returned(scene: Scene) -> float:
    """From the first answer of a server that was killed until a handler has a waiting message."""
    id = scene.publish(_SOON)
    scene.server.kill()
    time.sleep(_SOON.total_seconds() + 1)
    scene.server.start()
    with psycopg.connect(scene.server.url()) as connection:
        connection.execute("select 1")
    at = time.monotonic()
    begun = scene.line(lambda line: line.what == "start" and line.id == id)
    _end(scene, begun)
    return max(0.0, begun.at - at)


def frozen(scene: Scene) -> float:
    """How long a handler went on, after SIGCONT, beside the one that has its message now."""
    first = scene.begin_one()
    worker = scene.worker(first.pid)
    worker.send_signal(signal.SIGSTOP)
    scene.line(lambda line: line.what == "start" and line[2:4] == (first.id, 2))
    at = time.monotonic()
    worker.send_signal(signal.SIGCONT)
    scene.line(lambda line: line.what == "end" and line[2:4] == (first.id, 2))
    ticks = [line.at for line in scene.lines() if line.what == "tick" and line[1:3] == first[1:3]]
    return max(0.0, max(ticks, default=at) - at)


def _end(scene: Scene, begun: LedgerLine) -> None:
    """A second attempt ends by itself."""
    scene.worker(begun.pid).kill()
    scene.worker(begun.pid).wait()
    scene.workers.remove(scene.worker(begun.pid))
    scene.line(lambda line: line.what == "end" and line.id == begun.id)
    scene.workers.append(scene.start())


def measure(server: EmbeddedPostgres, folder: Path, size: Size) -> Table:
    columns = ["what", "times", "median s", "p99 s", "most s", "aim s", ""]
    table = Table(f"Recovery, leases of {LEASE:g} s, a heartbeat every {HEARTBEAT:.2f} s", columns)
    scene = Scene(server, folder)
    try:
        _add(table, "SIGKILL → another handler has it", size.kills, killed, scene, LEASE + 1)
        _add(table, "SIGCONT → the old handler stops", size.freezes, frozen, scene, HEARTBEAT)
        _add(table, "server back → first handler", size.returns, returned, scene, 5)
    finally:
        scene.close()
    return table


def _add(
    table: Table, what: str, times: int, once: Callable[[Scene], float], scene: Scene, aim: float
) -> None:
    if not times:
        return
    say(what)
    took = sorted(once(scene) for _ in range(times))
    p99 = took[min(len(took) - 1, int(len(took) * 0.99))]
    table.add(what, times, median(took), p99, took[-1], aim, "ok" if p99 <= aim else "late")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few of each, under a minute")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedPostgres(version=18, settings=SETTINGS) as server,
    ):
        table = measure(server, Path(folder), QUICK if options.quick else Size())
    show([table], as_json=options.json)


if __name__ == "__main__":
    main()
