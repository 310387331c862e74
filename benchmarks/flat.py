"""Does a claim cost the same however much there is? `python -m benchmarks.flat`"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from laneway import Queue

from .bench import Bench, running, say, tidy
from .cases import Case, all_cases
from .cycle import BATCH, Cost, Cycle, cost
from .heights import grown, heights
from .report import Table, show

MOST = 1.10
_COLUMNS = ("case", "claim", "complete", "WAL bytes", "buffers ratio", "WAL ratio", "")

_EDGES = ("claim first", "claim last", "complete first", "complete last")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="at most 100,000 of anything")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    most, cycled = (100_000, 10_000) if options.quick else (1_000_000, 50_000)
    with running() as bench:
        tables = measure(bench, all_cases(most), cycled)
    show(tables, as_json=options.json)


def measure(bench: Bench, cases: list[Case], cycled: int, batches: int = 20) -> list[Table]:
    """Steady state, and the same under an old snapshot while ``cycled`` messages pass."""
    flat = Table("Per claimed message, batches of 100: buffers and WAL", _COLUMNS)
    flat.notes.append("ratio: to the first case of its group; high: above 1.10")
    old = Table(
        f"Under an old snapshot, {cycled:,} messages cycled: the last 1,000 against the first",
        [
            "case",
            "claim first",
            "claim last",
            "complete first",
            "complete last",
            "worst",
            "ratio",
            "",
        ],
    )
    old.notes.append("worst: the dearest claim of the cycle; a client scans all once a minute")
    firsts: dict[str, tuple[Cost, dict[str, int]]] = {}
    for case in cases:
        say(case.name)
        with bench.database() as url:
            steady, first, last, worst = _measured(url, case, cycled, batches)
            levels = heights(url)
        least, least_levels = firsts.setdefault(case.group, (steady, levels))
        _add(flat, case, steady, least, grown(levels, least_levels))
        ratio = last.buffers / first.buffers
        seen = f"{steady.buffers:.2f} buffers, {steady.wal:.0f} WAL bytes"
        say(f"  {seen}; under an old snapshot x {ratio:.2f}")
        row = (first.claim, last.claim, first.complete, last.complete, worst, ratio)
        old.add(case.name, *row, _high(ratio))
    return [flat, old]


def _measured(url: str, case: Case, cycled: int, batches: int) -> tuple[Cost, Cost, Cost, float]:
    with Queue(url) as queue:
        case.load(queue)
    tidy(url)
    cycle = Cycle(url, case.channel)
    cycle.run(6)
    steady = cost(cycle.run(batches))
    with old_snapshot(url):
        uses = cycle.run(cycled // BATCH)
    cycle.close()
    edge = min(10, len(uses) // 2)
    return steady, cost(uses[:edge]), cost(uses[-edge:]), cost(uses).worst


@contextmanager
def old_snapshot(url: str) -> Iterator[None]:
    """A report that began before and is still reading."""
    with psycopg.connect(url) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from pg_class")
        yield
        reader.rollback()


def _add(table: Table, case: Case, steady: Cost, least: Cost, deeper: list[str]) -> None:
    buffers, wal = steady.buffers / least.buffers, steady.wal / least.wal
    table.add(
        case.name, steady.claim, steady.complete, steady.wal, buffers, wal, _high(max(buffers, wal))
    )
    if max(buffers, wal) > MOST and deeper:
        extra = steady.buffers - least.buffers
        table.notes.append(f"{case.name}: {extra:+.2f} buffers; deeper trees: {', '.join(deeper)}")


def _high(ratio: float) -> str:
    return "high" if ratio > MOST else ""


if __name__ == "__main__":
    main()
