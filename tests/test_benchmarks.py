"""The benchmarks run, at sizes too small to say anything about speed: only counts are checked."""

import json
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest

from benchmarks import (
    events,
    every_look,
    fairness,
    flat,
    flows,
    kinds,
    lone,
    peers,
    recovery,
    report,
    slow_commits,
    sqlite,
    sqlite_flat,
    sqlite_looks,
    throughput,
)
from benchmarks.bench import Bench
from benchmarks.cases import alone, backlog, blocked, foreign, many_channels, scheduled
from benchmarks.single import DRIVERS, loops
from laneway.dev.embedded import EmbeddedPostgres

HOUR = timedelta(hours=1)
TINY = throughput.Size(
    rounds=1,
    drained=150,
    batches=(100,),
    clients=(2,),
    limited_channels=120,
    published=1_000,
    exchanged=80,
    commit_clients=2,
    commit_seconds=0.1,
    shapes=(100,),
)


@pytest.fixture
def bench(server: EmbeddedPostgres) -> Bench:
    return Bench(server)


@pytest.mark.repeats("a short run of the benchmark")
def test_a_claim_of_one_kind_costs_as_much_with_others_in_front(bench: Bench) -> None:
    size = kinds.Size(500, 5000, (1,))
    for side in (kinds.Postgresql(bench), kinds.Sqlite()):
        records = kinds.measure(side, size).records()
        few, many = (_number(row[f"{side.unit} a message"]) for row in records[1:])
        assert many < 1.2 * few


@pytest.mark.repeats("a short run of the benchmark")
def test_every_look_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    table = report.Table("looks", ("look", "ms", "ms of database time", "read", "below 50 ms"))
    with every_look.sqlite(2_000, 1_000, 500) as (url, meter):
        every_look.measure("SQLite", url, meter, 777, table)
    assert len(table.rows) > 70


@pytest.mark.repeats("a short run of the benchmark")
def test_flows_are_compared_with_plain_messages(tmp_path: Path) -> None:
    table = report.Table("flows", flows._COLUMNS)
    flows.measure("SQLite", f"sqlite:///{tmp_path}/flows.db", 1_200, 1, table)
    assert [row["shape"] for row in table.records()] == list(flows.SHAPES)


@pytest.mark.repeats("a short run of the benchmark")
def test_peers_drain_everything_and_leave_no_process(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own side: the others would have to be installed."""
    monkeypatch.setitem(peers.AT_ONCE, "laneway", (100,))
    ours = {"laneway": peers.environment("laneway", tmp_path)}
    size = peers.Size(300, 60.0, 1, (2,), 3)
    rates, picked = peers.measure(bench, ours, size)
    assert [(row["at once"], row["handled"]) for row in rates.records()] == [("100", 300)]
    assert [row["messages"] for row in picked.records()] == [3]
    left = [process.cmdline() for process in psutil.Process().children(recursive=True)]
    assert not [words for words in left if "benchmarks.peer_sides" in words]


@pytest.mark.repeats("a short run of the benchmark")
def test_a_lone_message_is_compared_with_a_bare_table(bench: Bench) -> None:
    for table in lone.measure(bench, ["bare", "laneway"], 30, 1):
        bare, ours = table.records()
        assert [row["side"] for row in (bare, ours)] == ["bare", "laneway"]
        assert _number(bare["to bare table"]) == 1 and _number(ours["to bare table"]) > 0


@pytest.mark.repeats("a short run of the benchmark")
def test_slow_commits_compare_both_sides(bench: Bench) -> None:
    (row,) = slow_commits.measure(bench, (100,), 100, 1).records()
    assert _number(row["ours msg/s"]) > 0 and _number(row["bare msg/s"]) > 0


@pytest.mark.repeats("a short run of the benchmark")
def test_throughput_compares_both_sides(bench: Bench) -> None:
    drains, limits, bulks, singles, costs = throughput.measure(bench, TINY)
    assert [(row["channels"], row["connections"]) for row in drains.records()] == [(100, 2)]
    assert [row["messages a claim"] for row in limits.records()] == [100] * len(limits.rows)
    assert len(bulks.rows) == 2  # batches of 1,000, and of 10,000 by COPY
    assert len(singles.rows) == len(DRIVERS) * len(loops())
    for cost in costs.records():
        assert _number(cost["WAL bytes"]) > 200  # the payload alone
        assert 0 < _number(cost["statements"]) < 4
    drained = next(cost for cost in costs.records() if cost["side"] == "bare")
    assert 8 / 300 <= _number(drained["statements"]) <= 14 / 300


@pytest.mark.repeats("a short run of the benchmark")
def test_flat_counts_buffers_and_wal(bench: Bench) -> None:
    cases = [many_channels(200), backlog(200, 1), alone(), blocked(100), scheduled(100)]
    steady, old = flat.measure(bench, [*cases, foreign(100)], 400, batches=3)
    for row in steady.records():
        assert 2 < _number(row["claim"]) < 100
        assert 2 < _number(row["complete"]) < 100
        assert 200 < _number(row["WAL bytes"]) < 5_000
    assert len(old.rows) == len(steady.rows)


def test_sqlite_compares_both_sides(tmp_path: Path) -> None:
    drains, publishes = sqlite.measure(tmp_path, sqlite.Size(1, 1_000, (100,), (10,)))
    for row in (*drains.records(), *publishes.records()):
        assert _number(row["ratio"]) > 0 and _number(row["ratio of cpu"]) > 0


def test_sqlite_stays_flat(tmp_path: Path) -> None:
    """Steps of SQLite's machine: the same in every run."""
    wanted = [
        sqlite_flat.many_channels(1_000),
        sqlite_flat.many_channels(3_000),
        sqlite_flat.backlog(1_000, 1),
        sqlite_flat.backlog(5_000, 1),
        sqlite_flat.beside("nothing else", lambda queue: None),
        sqlite_flat.beside("blocked", partial(sqlite_flat.blocked, count=1_000)),
        sqlite_flat.beside(
            "later", partial(sqlite_flat.fill, messages=2_000, channels=100, delay=HOUR)
        ),
    ]
    for row in sqlite_flat.measure(tmp_path, wanted, 5).records():
        assert 0.9 < _number(row["against the first"]) < 1.1, row


@pytest.mark.repeats("tests/sqlite compares the looks' steps")
def test_looks_on_sqlite_are_measured(tmp_path: Path) -> None:
    rows = sqlite_looks.measure(tmp_path, 20_000, 2_000).records()
    assert [row["look"] for row in rows] == list(sqlite_looks.LOOKS)
    assert all(_number(row["steps"]) > 0 for row in rows)


@pytest.mark.repeats("a short run of the benchmark")
def test_fairness_counts_starts(bench: Bench) -> None:
    size = fairness.Size(
        bulk=500, one_by_one=200, quiet=9, each=10, weighted=300, singles=100, repeats=1
    )
    spreads, hidden, weights = fairness.measure(bench, size)
    assert [row["starts"] for row in spreads.records()] == [100, 100]
    # First come, first served would be a hundred starts.
    for row in hidden.records()[:3]:
        assert _number(row["starts before"]) <= _number(row["one round"]) < 100, row
    assert sum(_number(row["share %"]) for row in weights.records()) == pytest.approx(200)


@pytest.mark.repeats("a short run of the benchmark")
def test_events_compares_three_sides(bench: Bench) -> None:
    assert "listener" not in events.without_events()
    table = events.measure(bench, events.Size(rounds=2, singles=5, batches=2, batch=10))
    assert len(table.rows) == 4
    for row in table.records():
        assert _number(row["off µs"]) > 0 and _number(row["nobody / off"]) > 0


def test_tables_are_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    table = report.Table("Title", ["what", "rate", ""], notes=["note"])
    table.add("one", 12_345.6, report.verdict(1.0, 0.9))
    table.add("two", None, report.verdict(0.5, 0.9))
    assert report.text(table).splitlines() == [
        "Title",
        "-------------------",
        "what    rate",
        "-------------------",
        "one   12,346  ok",
        "two        -  below",
        "note",
    ]
    report.show([table], as_json=True)
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["rows"][0] == {"what": "one", "rate": 12_345.6, "": "ok"}


def _number(cell: report.Cell) -> float:
    assert isinstance(cell, int | float)
    return cell


@pytest.mark.repeats("a short run of the benchmark")
def test_recovery_waits_for_the_next_handler(bench: Bench, tmp_path: Path) -> None:
    (row,) = recovery.measure(bench.server, tmp_path, recovery.Size(1, 0, 0)).records()
    assert row["times"] == 1 and _number(row["most s"]) > 0
