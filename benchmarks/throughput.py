"""Ours against a bare table, in one run on one server: `python -m benchmarks.throughput`."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from .bench import Bench, running, say
from .bulk import bulk
from .clients import Run
from .commits import commit_rate
from .counters import Counters
from .drain import drain
from .limited import POLICIES, limited
from .report import Table, show, verdict
from .single import DRIVERS, TASKS, loops, single

DRAIN_TARGETS = {1: 0.9, 100: 0.65, 10_000: 0.35}
BULK_TARGETS = {1_000: 0.5, 10_000: 0.6}
"""By the size of a batch."""
SINGLE_TARGETS = {1: 2_000, 100: 5_000}
SHAPES = tuple(DRAIN_TARGETS)
_COST = ("WAL bytes", "statements", "commits", "server µs", "python µs")


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int = 3
    drained: int = 20_000
    batches: tuple[int, ...] = (100, 500)
    clients: tuple[int, ...] = (1, 4, 8)
    limited_channels: int = 1_000
    published: int = 50_000
    exchanged: int = 10_000
    commit_clients: int = 8
    commit_seconds: float = 3.0
    shapes: tuple[int, ...] = SHAPES


QUICK = Size(1, 6_000, (100,), (1, 8), 300, 10_000, 2_000, commit_seconds=1.0)


@dataclass(slots=True)
class Costs:
    """The second table: what one message costs."""

    table: Table

    def add(self, what: str, side: str, run: Run) -> None:
        cost = run.cost
        self.table.add(what, side, cost.wal, run.statements, cost.commits, cost.server, cost.python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, under a minute")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--only", choices=["drain", "limited", "bulk", "single"], help="one part")
    options = parser.parse_args()
    with running() as bench:
        tables = measure(bench, QUICK if options.quick else Size(), options.only)
    show(tables, as_json=options.json)


def measure(bench: Bench, size: Size, only: str | None = None) -> list[Table]:
    costs = Costs(Table("Costs per message (medians)", ["what", "side", *_COST]))
    parts = {"drain": drains, "limited": limits, "bulk": bulks, "single": singles}
    tables = [
        part(bench, size, costs) for name, part in parts.items() if only is None or only == name
    ]
    return [*tables, costs.table]


def drains(bench: Bench, size: Size, costs: Costs) -> Table:
    """Claim and complete a backlog in batches."""
    columns = ["channels", "batch", "connections", "ours msg/s", "bare msg/s", "ratio"]
    table = Table("Drain: claim and complete, ours / bare table", [*columns, "target", ""])
    for batch in size.batches:
        for channels in size.shapes:
            alone = 0.0
            for clients in size.clients:
                what = f"drain {channels:,} channels, batch {batch}, {clients} connections"
                messages = size.drained * (1 if clients == 1 else 2)
                ours, bare = _pair(
                    what, size.rounds, costs, _drained(bench, channels, messages, batch, clients)
                )
                ratio, target = ours / bare, DRAIN_TARGETS.get(channels)
                row = (channels, batch, clients, ours, bare, ratio, target)
                table.add(*row, verdict(ratio, target))
                alone = alone or ours
                if channels == 1 and clients > 1:
                    note = f"one hot channel, batch {batch}, {clients} connections against one: "
                    table.notes.append(f"{note}{ours / alone:.2f} {verdict(ours / alone, 1.0)}")
    return table


def _drained(
    bench: Bench, channels: int, messages: int, batch: int, clients: int
) -> Callable[[str], Run]:
    return lambda side: drain(bench, side, channels, messages, batch, clients)


def limits(bench: Bench, size: Size, _: Costs) -> Table:
    """Claim and complete from channels of which none may start more than one at a time."""
    columns = ["each channel", "msg/s", "messages a claim", "to no limit"]
    channels = size.limited_channels
    table = Table(f"Limited: {channels:,} channels, batches of 100", columns)
    alone = 0.0
    for name, policy in POLICIES.items():
        say(f"limited, {name}")
        runs = [limited(bench, policy, channels) for _ in range(size.rounds)]
        rate, filled = (median(values) for values in zip(*runs, strict=True))
        alone = alone or rate
        table.add(name, rate, filled, rate / alone)
    return table


def bulks(bench: Bench, size: Size, costs: Costs) -> Table:
    """Publish in batches of a thousand, and of ten thousand, which go by COPY."""
    columns = ["channels", "batch", "ours msg/s", "bare msg/s", "ratio", "target", ""]
    table = Table("Bulk publish, ours / bare insert", columns)
    for batch, target in BULK_TARGETS.items():
        for channels in size.shapes:
            ours, bare = _pair(
                f"publish to {channels:,} channels, batch {batch:,}",
                size.rounds,
                costs,
                _published(bench, channels, size.published, batch),
            )
            table.add(
                channels, batch, ours, bare, ours / bare, target, verdict(ours / bare, target)
            )
    return table


def _published(bench: Bench, channels: int, messages: int, batch: int) -> Callable[[str], Run]:
    return lambda side: bulk(bench, side, channels, messages, batch)


def singles(bench: Bench, size: Size, costs: Costs) -> Table:
    """One message at a time, against the bare table and beside the machine's own commit rate."""
    columns = ["channels", "driver", "loop", "ours msg/s", "bare msg/s", "ratio", "target", ""]
    title = f"One at a time: {TASKS} publishing and {TASKS} consuming tasks on one client"
    table = Table(title, columns)
    say("commit rate")
    commits = [commit_rate(bench, size.commit_clients, size.commit_seconds)]
    for channels in size.shapes:
        for driver in DRIVERS:
            for loop in loops():
                what = f"single {channels:,} channels, {driver}, {loop}"
                ours, bare = _pair(
                    what, size.rounds, costs, _exchanged(bench, channels, size, driver, loop)
                )
                target = SINGLE_TARGETS.get(channels)
                said = verdict(ours, target)
                table.add(channels, driver, loop, ours, bare, ours / bare, target, said)
    commits.append(commit_rate(bench, size.commit_clients, size.commit_seconds))
    shown = " and ".join(f"{rate:,.0f}" for rate in commits)
    table.notes.append("bare: the bare table behind the same group commit")
    table.notes.append(
        f"one-row commits of {size.commit_clients} clients, before and after: {shown}/s"
    )
    return table


def _exchanged(
    bench: Bench, channels: int, size: Size, driver: str, loop: str
) -> Callable[[str], Run]:
    return lambda side: single(bench, side, channels, size.exchanged, driver, loop)


def _pair(
    what: str, rounds: int, costs: Costs, measure_side: Callable[[str], Run]
) -> tuple[float, float]:
    """Both sides in turn, so that a slow minute of the machine hits both."""
    say(what)
    runs: dict[str, list[Run]] = {"ours": [], "bare": []}
    for _ in range(rounds):
        for side, done in runs.items():
            done.append(measure_side(side))
    for side, done in runs.items():
        costs.add(what, side, _middle(done))
    ours, bare = (median(run.rate for run in done) for done in runs.values())
    return ours, bare


def _middle(runs: list[Run]) -> Run:
    """The medians of each figure."""
    cost = Counters(*(median(values) for values in zip(*(run.cost for run in runs), strict=True)))
    rate, statements = median(run.rate for run in runs), median(run.statements for run in runs)
    return Run(rate, runs[0].messages, statements, cost)


if __name__ == "__main__":
    main()
