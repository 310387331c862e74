"""The made-up history is one that a queue could have written."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc
import pytest

from laneway.errors import InvalidOption
from laneway.lake.columns import HISTORY
from laneway.lake.synth import SyntheticHistory, synthesize

UNTIL = datetime(2026, 11, 15, 13, 7, tzinfo=UTC)


@pytest.fixture(scope="module")
def long_story() -> SyntheticHistory:
    return synthesize(30_000, until=UNTIL)


@pytest.fixture(scope="module")
def rows(long_story: SyntheticHistory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = long_story.history.to_pylist()
    return found


def test_the_same_seed_tells_the_same_story() -> None:
    first, again, other = (synthesize(2_000, until=UNTIL, seed=seed) for seed in (7, 7, 8))
    assert first.history.equals(again.history) and first.live.equals(again.live)
    assert not first.history.equals(other.history)


def test_columns_are_those_of_the_history(long_story: SyntheticHistory) -> None:
    assert long_story.history.schema == HISTORY
    long_story.history.validate(full=True)


def test_every_message_ends_once_or_is_alive(
    long_story: SyntheticHistory, rows: list[dict[str, Any]]
) -> None:
    ends = Counter(row["message_id"] for row in rows if row["terminal"])
    assert set(ends.values()) == {1}
    alive = long_story.live["message_id"].to_pylist()
    assert len(set(alive)) == len(alive)
    assert not set(alive) & set(ends)
    assert len(ends) + len(alive) == 30_000


def test_times_are_in_order(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        times = [row[name] for name in ("first_published_at", "published_at", "due", "claimed_at")]
        known = [at for at in [*times, row["ended_at"]] if at is not None]
        assert known == sorted(known), row
        assert row["ended_at"] <= UNTIL


def test_fences_rise_with_every_claim_of_a_message(rows: list[dict[str, Any]]) -> None:
    last: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: row["ended_at"]):
        if row["claimed_at"] is not None:
            assert row["fence"] > last.get(row["message_id"], 0)
            last[row["message_id"]] = row["fence"]


def test_all_that_happens_in_a_queue_happens_in_it(rows: list[dict[str, Any]]) -> None:
    outcomes = {row["outcome"] for row in rows}
    assert outcomes == {
        "completed", "deferred", "retried", "failed", "expired", "given_back",
        "cancelled", "lapsed", "redriven", "discarded", "stale",
    }  # fmt: skip
    expired = Counter(row["message_id"] for row in rows if row["outcome"] == "expired")
    assert max(expired.values()) >= 6, "a poison message"


def test_tenants_are_skewed_and_nights_are_quiet(long_story: SyntheticHistory) -> None:
    channels = Counter(long_story.history["channel"].to_pylist())
    assert channels.most_common(1)[0][1] > 20 * min(channels.values())
    hours = Counter(pc.hour(long_story.history["published_at"].drop_null()).to_pylist())
    assert hours[14] > 3 * hours[3]


def test_an_incident_is_under_way_at_the_end_unless_it_is_calm() -> None:
    def waiting(story: SyntheticHistory) -> int:
        return int(story.live["state"].to_pylist().count("waiting"))

    assert waiting(synthesize(30_000, until=UNTIL)) > 3
    assert waiting(synthesize(30_000, until=UNTIL, calm=True)) <= 3


@pytest.mark.parametrize("days", [0.1, 1, 3])
def test_short_stories_can_be_told(days: float) -> None:
    story = synthesize(500, until=UNTIL, days=days)
    first = pc.min(story.history["first_published_at"]).as_py()
    assert first >= UNTIL - timedelta(days=days)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidOption):
        synthesize(0, until=UNTIL)
    with pytest.raises(InvalidOption, match="zone"):
        synthesize(1, until=UNTIL.replace(tzinfo=None))
