"""The history's way to the lake, and a report over it: `python -m benchmarks.lake`.

Each sync runs in a process of its own, whose peak of memory is the figure; it needs no JVM. The
report's seconds are split by what it says while it works.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.lake import Lake
from laneway.lake.synth import SyntheticHistory, synthesize
from laneway.lake.synth.history import write_database, write_lake

from .report import Table, show

SIZES = (100_000, 300_000, 1_000_000)
_MEGABYTE = 1024  # kilobytes, in which Linux counts


def measure_sync(server: EmbeddedPostgres, sizes: tuple[int, ...]) -> Table:
    table = Table(
        "Lake: sync", ["attempts", "sync rows/s", "verify rows/s", "peak MB", "MB on disk"]
    )
    for size in sizes:
        url = server.create_database(f"lake {size}")
        with Queue(url) as queue, tempfile.TemporaryDirectory() as root:
            queue.install()
            write_database(_story(size), Lake(url, root).catalog)
            command = [sys.executable, "-m", "benchmarks.lake", "--child", url, root]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            told = json.loads(done.stdout.splitlines()[-1])
            disk = Lake(url, root).status().bytes / 1e6
        rates = (int(size / told[step]) for step in ("sync", "verify"))
        table.add(size, *rates, told["peak"], round(disk, 1))
    return table


def sync_once(url: str, root: str) -> None:
    """In a process of its own."""
    lake, told = Lake(url, root), {}
    for step, work in (("sync", lake.sync), ("verify", lake.verify)):
        began = time.perf_counter()
        work()
        told[step] = time.perf_counter() - began
    told["peak"] = _peak(Path("/proc/self"))
    print(json.dumps(told))


def measure_report(size: int) -> Table:
    table = Table(f"Lake: report over {size:,} attempts", ["stage", "seconds", "share"])
    with tempfile.TemporaryDirectory() as root:
        # In a process of its own, which may need more memory than a report may.
        command = [sys.executable, "-m", "benchmarks.lake", "--write", str(size), root]
        subprocess.run(command, check=True)
        stages = Stages()
        Lake(None, root, say=stages.say).report()
        seconds = stages.end()
        java = _peak_of_java()
    whole = sum(seconds.values())
    for stage, spent in sorted(seconds.items(), key=lambda item: -item[1])[:8]:
        table.add(stage, round(spent, 1), f"{spent / whole:.0%}")
    table.add("all stages", round(whole, 1), "")
    peak = _peak(Path("/proc/self"))
    table.notes.append(f"peak memory: Python {peak} MB, JVM {java} MB")
    return table


class Stages:
    """How long it was until the next thing was said."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._stage, self._began = "", time.perf_counter()

    def say(self, text: str) -> None:
        now = time.perf_counter()
        if self._stage:
            self._seconds[self._stage] += now - self._began
        self._stage, self._began = text.partition(",")[0], now

    def end(self) -> dict[str, float]:
        """The page comes after the last table."""
        self.say("end")
        return self._seconds


def _peak(process: Path) -> int:
    """Not getrusage: a child inherits its parent's there."""
    lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) // _MEGABYTE


def _peak_of_java() -> int:
    """Of this process's JVM, as Linux has noted it."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # gone in the meantime
            continue
        if lines["Name"].strip() == "java" and int(lines["PPid"]) == os.getpid():
            return _peak(status.parent)
    return 0


def _story(size: int) -> SyntheticHistory:
    """So many attempts of a fortnight, a little less than one message each."""
    story = synthesize(size, until=datetime.now(UTC))
    return SyntheticHistory(story.history.slice(0, size), story.live, story.until)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sync", type=int, nargs="*", default=None)
    parser.add_argument("--report", type=int, nargs="?", const=SIZES[-1], default=None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        size, root = given.write
        write_lake(_story(int(size)), Lake(None, root).folder)
        return
    if given.child:
        sync_once(*given.child)
        return
    both = given.sync is None and given.report is None
    if both or given.sync is not None:
        with EmbeddedPostgres() as server:
            show([measure_sync(server, tuple(given.sync or SIZES))], as_json=given.json)
    if both or given.report is not None:
        show([measure_report(given.report or SIZES[-1])], as_json=given.json)


if __name__ == "__main__":
    main()
