"""Laneway beside other queues on PostgreSQL: `python -m benchmarks.peers`, or `make bench-peers`.

Every package in a virtual environment of its own under .cache/peers, on one throwaway server, with
the same work: messages of 200 bytes that were published before, an async handler that does nothing,
one worker process and four; and the pick-up of single messages by an idle worker. The sides take
turns over several rounds; the middle one counts. PgQueuer is what the ratios are against.

A drain ends when all is handled or after so many seconds: some wait for seconds between two looks.
Rates are of handlers, from the first to the last; processor time is that of all of the server.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from .bench import Bench, running, say, tidy
from .counters import server_seconds
from .report import Table, show

ROOT = Path(__file__).parent.parent
BASELINE = "pgqueuer"
# What pip installs; nothing for ourselves.
PACKAGES: dict[str, list[str]] = {
    "laneway": [],
    "pgqueuer": ["pgqueuer", "asyncpg"],
    "pgmq": ["pgmq[async]"],
    "procrastinate": ["procrastinate"],
    "chancy": ["chancy"],
    "dbos": ["dbos"],
}
# How many a worker takes at once, besides what is its default.
AT_ONCE: dict[str, tuple[int | None, ...]] = dict.fromkeys(PACKAGES, (None, 100)) | {
    "dbos": (None,)  # no batches: everything that waits is started at each look
}
_STARTS = 90.0  # seconds until the first message must be handled
_SETTLES = 0.7  # seconds in which the last outcomes are written
_STOPS = 10.0


@dataclass(frozen=True)
class Size:
    messages: int = 5_000
    seconds: float = 20.0
    rounds: int = 3
    workers: tuple[int, ...] = (1, 4)
    pick_ups: int = 40


class Drain(NamedTuple):
    rate: float
    server: float
    """Microseconds of processor time a message."""
    handled: int


class Environment(NamedTuple):
    python: Path
    version: str


@dataclass
class Process:
    """A side's script in a session of its own, so that what it starts ends with it."""

    popen: subprocess.Popen[str]
    last: dict[str, Any] = field(default_factory=lambda: {"n": 0, "first": 0, "last": 0})
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        with self.popen.stdout as lines:
            for line in lines:
                if line.startswith("{"):
                    self.last = json.loads(line)
                    self.waits += self.last["waits"]

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.popen.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(_STOPS)
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        self._reader.join(_STOPS)


def environment(side: str, folder: Path) -> Environment:
    """Made at the first run; with the version of the package."""
    if side == "laneway":
        from laneway import __version__

        return Environment(Path(sys.executable), __version__)
    place = folder / side
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        say(f"installing {side} into {place}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        pip = ["-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([python, *pip, *PACKAGES[side]], check=True)
        (place / "ready").touch()
    ask = f"import importlib.metadata as m; print(m.version({side!r}))"
    found = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True)
    return Environment(python, found.stdout.strip())


def drain(
    bench: Bench, python: Path, side: str, at_once: int | None, workers: int, size: Size
) -> Drain:
    with bench.database(installed=False) as url:
        _run(python, side, "create", url)
        _run(python, side, "publish", url, size.messages)
        tidy(url)
        before = server_seconds(bench)
        processes = [_start(python, side, "work", url, at_once) for _ in range(workers)]
        try:
            _wait(processes, size.messages, size.seconds)
            time.sleep(_SETTLES)
            spent = server_seconds(bench) - before
        finally:
            for process in processes:
                process.stop()
        told = [process.last for process in processes if process.last["n"]]
    handled = sum(one["n"] for one in told)
    if not handled:
        raise RuntimeError(f"{side} has handled nothing in {_STARTS:.0f} s")
    seconds = (max(one["last"] for one in told) - min(one["first"] for one in told)) / 1e9
    return Drain(handled / max(seconds, 1e-3), 1e6 * spent / handled, handled)


def pick_up(bench: Bench, python: Path, side: str, times: int) -> float:
    """The middle one in milliseconds, from before the publish to the handler."""
    with bench.database(installed=False) as url:
        _run(python, side, "create", url)
        worker = _start(python, side, "work", url, None)
        try:
            _run(python, side, "send", url, 1)  # until it has started, and what is done only once
            _wait([worker], 1, 1)
            _run(python, side, "send", url, times)
            _wait([worker], times + 1, 10)
        finally:
            worker.stop()
    return median(worker.waits[1:])


def _run(python: Path, *arguments: str | int) -> None:
    process = _start(python, *arguments)
    try:
        if process.popen.wait(300):
            raise RuntimeError(f"{arguments[:2]} has failed; its error is above")
    finally:
        process.stop()


def _start(python: Path, *arguments: str | int | None) -> Process:
    words = [str(argument) for argument in arguments if argument is not None]
    popen = subprocess.Popen(
        [python, "-m", "benchmarks.peer_sides", *words],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if "work" in words else None,
        text=True,
        start_new_session=True,
    )
    return Process(popen)


def _wait(processes: Sequence[Process], messages: int, seconds: float) -> None:
    """Until all are handled, or for so many seconds after the first one."""
    end, begun = time.monotonic() + _STARTS, False
    while time.monotonic() < end:
        handled = sum(process.last["n"] for process in processes)
        if handled >= messages:
            return
        if handled and not begun:
            begun, end = True, time.monotonic() + seconds
        if all(process.popen.poll() is not None for process in processes):
            raise RuntimeError("all workers have ended; try `python -m benchmarks.peer_sides`")
        time.sleep(0.02)


def measure(bench: Bench, environments: dict[str, Environment], size: Size) -> list[Table]:
    drains: dict[tuple[str, int | None, int], list[Drain]] = {}
    waits: dict[str, list[float]] = {}
    for number in range(size.rounds):
        for side, (python, _) in environments.items():
            say(f"round {number + 1}: {side}")
            for at_once in AT_ONCE[side]:
                for workers in size.workers:
                    found = drain(bench, python, side, at_once, workers, size)
                    drains.setdefault((side, at_once, workers), []).append(found)
            waits.setdefault(side, []).append(pick_up(bench, python, side, size.pick_ups))
    middle = {key: _middle(done) for key, done in drains.items()}
    columns = ["package", "at once", "workers", "msg/s", "ratio", "server µs", "ratio ", "handled"]
    rates = Table(f"Drained, {size.messages:,} messages, no-op async handler", columns)
    for (side, at_once, workers), run in middle.items():
        base = middle.get((BASELINE, at_once if at_once in AT_ONCE[BASELINE] else None, workers))
        ratios = (run.rate / base.rate, run.server / base.server) if base else (None, None)
        said = "default" if at_once is None else str(at_once)
        rates.add(side, said, workers, run.rate, ratios[0], run.server, ratios[1], run.handled)
    rates.notes.append(f"ratios against {BASELINE}; of server µs, less is better")
    rates.notes.append(
        "versions: " + ", ".join(f"{n} {e.version}" for n, e in environments.items())
    )
    picked = Table("Picked up by an idle worker", ["package", "messages", "p50 ms", "ratio"])
    base_ms = median(waits[BASELINE]) if BASELINE in waits else None
    for side, times in waits.items():
        value = median(times)
        picked.add(side, size.pick_ups, value, value / base_ms if base_ms else None)
    load = os.getloadavg()
    picked.notes.append(f"load at the end: {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}")
    return [rates, picked]


def _middle(runs: Sequence[Drain]) -> Drain:
    return Drain(
        median(run.rate for run in runs),
        median(run.server for run in runs),
        int(median(run.handled for run in runs)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=Size.messages)
    parser.add_argument("--seconds", type=float, default=Size.seconds, help="of a drain, at most")
    parser.add_argument("--rounds", type=int, default=Size.rounds)
    parser.add_argument("--pick-ups", type=int, default=Size.pick_ups)
    parser.add_argument("--only", default=",".join(PACKAGES), help="packages, with commas")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    size = Size(options.messages, options.seconds, options.rounds, pick_ups=options.pick_ups)
    names = [name for name in PACKAGES if name in options.only.split(",")]
    environments = {name: environment(name, ROOT / ".cache" / "peers") for name in names}
    with running() as bench:
        show(measure(bench, environments, size), as_json=options.json)


if __name__ == "__main__":
    main()
