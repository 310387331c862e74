"""The demo's accounts can come out bad, read from forged histories; and its report can fail."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from laneway import HistoryEntry
from laneway.dev.demo.results import most_at_once, rate_excess, summarize
from laneway.dev.demo.scenario import build_report

START = datetime(2026, 1, 1, tzinfo=UTC)


def _entry(id: int, claimed: float, ended: float, **fields: object) -> HistoryEntry:
    entry = HistoryEntry(
        id, id, "default", "limited", "job", 0, 1, id, "worker-1", "completed", None, None, None,
        START, START, START, _at(claimed), _at(ended), 0, True, False,
    )  # fmt: skip
    return replace(entry, **fields)  # type: ignore[arg-type]


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_leases_that_meet_are_counted_and_those_that_touch_are_not() -> None:
    assert most_at_once([_entry(1, 0, 1), _entry(2, 1, 2)]) == 1
    assert most_at_once([_entry(1, 0, 1), _entry(2, 0.5, 2), _entry(3, 0.9, 3)]) == 3


def test_a_window_with_too_many_starts_is_found() -> None:
    steady = [_at(n / 10) for n in range(20)]
    assert rate_excess(steady, rate=10, burst=1) <= 0
    assert rate_excess([*steady, _at(1.9), _at(1.9)], rate=10, burst=1) > 1
    assert rate_excess([_at(0)] * 6, rate=10, burst=5) > 0.9


def test_what_was_done_twice_lost_or_dead_shows() -> None:
    entries = [
        _entry(1, 0, 1),
        _entry(2, 2, 3, message_id=1, attempt=2),
        _entry(3, 4, 5, outcome="expired", terminal=False),
        _entry(4, 6, 7, outcome="failed", dead=True, channel="poison"),
    ]
    found = summarize(entries, window=3, rate=10, burst=5)
    assert (found.completed, found.twice, found.dead, found.redelivered) == (2, 1, 1, 1)
    assert found.expired == {"worker-1": 1}
    assert found.first_starts == {"limited": 2, "poison": 1}


def test_a_report_that_cannot_be_made_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    build_report("postgresql://me:canary@127.0.0.1:1/none")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("No report this time: ") and "127.0.0.1" in last
    assert "canary" not in last
