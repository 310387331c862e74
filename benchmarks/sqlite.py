"""Ours against a bare table, both on SQLite files: `python -m benchmarks.sqlite`.

Everything happens in one process, so processor time is counted beside the clock: it says what the
code costs, where the clock also says what the disk does.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from .bench import CHUNK, say
from .report import Table, show, verdict
from .sqlite_sides import BareOnSqlite, OursOnSqlite

DRAIN_TARGETS = {1: 0.5, 100: None, 1_000: 0.3}
SIDES: dict[str, Callable[[Path], Any]] = {"ours": OursOnSqlite, "bare": BareOnSqlite}


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int = 5
    messages: int = 10_000
    batches: tuple[int, ...] = (100, 500)
    shapes: tuple[int, ...] = tuple(DRAIN_TARGETS)


QUICK = Size(1, 3_000, (100,))


class Spent(NamedTuple):
    """Per message, in microseconds: by the clock, and by the processor."""

    clock: float
    cpu: float


class Measured(NamedTuple):
    publish: Spent
    drain: Spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, some seconds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--folder", help="where the files are made; by default a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        show(measure(Path(folder), QUICK if options.quick else Size()), as_json=options.json)


def measure(folder: Path, size: Size) -> list[Table]:
    columns = ["channels", "batch", "ours msg/s", "bare msg/s", "ratio", "ratio of cpu"]
    drains = Table("SQLite, drain: claim and complete", [*columns, "target", ""])
    publishes = Table(f"SQLite, publish in batches of {CHUNK:,}", columns)
    names = count(1)
    for batch in size.batches:
        for channels in size.shapes:
            say(f"sqlite: {channels:,} channels, batch {batch}")
            runs: dict[str, list[Measured]] = {side: [] for side in SIDES}
            for _ in range(size.rounds):
                for side, results in runs.items():
                    path = folder / f"{next(names)}.db"
                    results.append(_run(SIDES[side], path, size.messages, channels, batch))
            row = _compared([run.drain for run in runs["ours"]], [r.drain for r in runs["bare"]])
            target = DRAIN_TARGETS.get(channels)
            drains.add(channels, batch, *row, target, verdict(row[2], target))
            published = [[run.publish for run in runs[side]] for side in ("ours", "bare")]
            publishes.add(channels, batch, *_compared(*published))
    return [drains, publishes]


def _run(
    side: Callable[[Path], Any], path: Path, messages: int, channels: int, batch: int
) -> Measured:
    client = side(path)
    try:
        published = [
            _publish(client, range(start, start + CHUNK), channels)
            for start in range(0, messages, CHUNK)
        ]
        with _timed() as drained:
            done = client.drain(batch).messages
        if done != messages:
            raise RuntimeError(f"drained {done} of {messages}")
    finally:
        client.close()
    publish = Spent(*(sum(column) / messages for column in zip(*published, strict=True)))
    return Measured(publish, Spent(drained[0].clock / done, drained[0].cpu / done))


def _publish(client: Any, numbers: range, channels: int) -> Spent:
    drafts = client.drafts([f"channel {number % channels}" for number in numbers])
    with _timed() as spent:
        client.publish(drafts)
    return spent[0]


@contextmanager
def _timed() -> Iterator[list[Spent]]:
    spent: list[Spent] = []
    clock, cpu = time.perf_counter(), time.process_time()
    yield spent
    spent.append(Spent((time.perf_counter() - clock) * 1e6, (time.process_time() - cpu) * 1e6))


def _compared(ours: list[Spent], bare: list[Spent]) -> tuple[float, float, float, float]:
    """Rates of the medians; the ratios are the medians of the pairs, which ran side by side."""
    pairs = list(zip(ours, bare, strict=True))
    return (
        1e6 / median(spent.clock for spent in ours),
        1e6 / median(spent.clock for spent in bare),
        median(b.clock / o.clock for o, b in pairs),
        median(b.cpu / o.cpu for o, b in pairs),
    )


if __name__ == "__main__":
    main()
