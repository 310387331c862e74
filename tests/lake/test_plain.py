"""The lake of a queue in MariaDB or SQLite holds exactly its history, too."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from laneway import Queue
from laneway.errors import InvalidOption, SchemaMissing
from laneway.lake import Lake
from laneway.lake.synth import SyntheticHistory
from tests.lake.conftest import LONG
from tests.lake.test_sync import KEEP, damage, in_database, rows_of, run, states
from tests.place import Place, fresh_schema
from tests.stores import Databases

_MARIADB = pytest.param("mariadb", marks=pytest.mark.repeats("the same statements on SQLite"))


@pytest.fixture(params=["sqlite_files", _MARIADB])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "mariadb" and not (LONG or "arrive" in request.node.name):
        pytest.skip("ten seconds each: make test-spark-long")
    databases: Databases = request.getfixturevalue(request.param)
    schema = fresh_schema()
    return Place(databases.create_database(f"lake {schema}"), schema)


@pytest.fixture
def queue(place: Place) -> Iterator[Queue]:
    with Queue(place.url, schema=place.schema, upkeep_every=None) as client:
        client.install()
        yield client


def without_places(rows: pa.Table) -> pa.Table:
    return rows.drop_columns(["id", "xid"])


def test_all_rows_and_columns_arrive_once_and_old_ones_are_purged(
    told: Lake, story: SyntheticHistory, queue: Queue
) -> None:
    assert told.status().behind == story.history.num_rows
    synced = told.sync(700)
    assert synced.rows == story.history.num_rows and synced.batches == 5
    assert told.sync().rows == 0
    assert without_places(rows_of(told)).equals(without_places(story.history))
    assert all("not verified" in (d.stays or "younger") for d in told.purge(KEEP, dry_run=True)[:1])
    assert told.verify().damaged == [] and set(states(told)) == {"verified"}
    days = told.purge(KEEP)
    gone = sum(day.rows for day in days if day.stays is None)
    assert gone > 0 and in_database(told) == story.history.num_rows - gone
    assert rows_of(told).num_rows == story.history.num_rows
    found = told.status()
    assert found.batches["purged"] and found.behind == 0 and found.kept == "all"


def test_what_is_damaged_stays_and_is_mended(told: Lake, story: SyntheticHistory) -> None:
    told.sync(700)
    told.verify()
    path = damage(told, "half")
    kept = {f"day={d.day}": d.stays for d in told.purge(KEEP, dry_run=True)}
    assert "damaged" in (kept[path.split("/")[1]] or "")
    assert told.verify(everything=True).again
    told.sync()
    assert told.verify().damaged == []
    assert without_places(rows_of(told)).equals(without_places(story.history))


def test_compaction_keeps_every_row(told: Lake, story: SyntheticHistory) -> None:
    told.sync(300)
    told.verify()
    assert told.compact(timedelta(0)).days >= 3
    assert without_places(rows_of(told)).equals(without_places(story.history))
    assert told.verify(everything=True).damaged == []


@pytest.mark.parametrize("point", ["tell:plan_batch:2", "folder:move:2", "tell:note_file:1"])
def test_a_killed_sync_is_taken_up(
    told: Lake, story: SyntheticHistory, place: Place, point: str
) -> None:
    run(told, place, "sync", point)
    told.sync(700)
    assert told.verify().damaged == []
    assert without_places(rows_of(told)).equals(without_places(story.history))


def test_a_killed_purge_loses_nothing(told: Lake, story: SyntheticHistory, place: Place) -> None:
    told.sync(700)
    told.verify()
    run(told, place, "purge", "tell:purge:2")
    told.purge(KEEP)
    assert told.verify(everything=True).damaged == []
    assert rows_of(told).num_rows == story.history.num_rows


def test_upkeep_keeps_old_days_for_the_lake(told: Lake, queue: Queue) -> None:
    queue.configure(history_days=1)
    whole = in_database(told)
    told.sync()
    queue.upkeep()
    assert in_database(told) == whole, "written is not verified"
    told.verify()
    queue.upkeep()
    assert in_database(told) < whole, "verified days past the retention go"


def test_what_is_alive_and_odd_names_arrive(lake: Lake, queue: Queue) -> None:
    queue.publish({"n": 1}, channel="ü '%s' \\", kind="a%b")
    queue.publish({"n": 2}, channel="later", delay=timedelta(hours=1))
    queue.publish({"n": 3}, channel="done")
    for message in queue.claim(limit=2):
        if message.channel == "done":
            message.complete()
    assert lake.sync().rows == 1
    live = lake.folder.read_table("live/snapshot.parquet").to_pylist()
    assert sorted((row["channel"], row["kind"], row["state"]) for row in live) == [
        ("later", "", "scheduled"), ("ü '%s' \\", "a%b", "leased"),
    ]  # fmt: skip
    assert lake.folder.read_json("live/numbers.json")["numbers"]["default"]["leased"] == 1


def test_a_database_without_a_catalog_says_what_to_do(place: Place, tmp_path: Path) -> None:
    with pytest.raises(SchemaMissing, match="install"):
        Lake(place.url, tmp_path, schema=place.schema).sync()


def test_a_queue_in_memory_has_no_lake(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="memory"):
        Lake("sqlite://", tmp_path).sync()


def test_what_is_purged_was_counted_into_the_minutes_before(
    told: Lake, story: SyntheticHistory, queue: Queue
) -> None:
    """No upkeep ran since the history was written."""
    told.sync()
    told.verify()
    gone = {day.day for day in told.purge(KEEP) if day.stays is None}
    assert gone
    rows = story.history.select(["ended_at", "outcome"]).to_pylist()
    ended = [row["ended_at"] for row in rows if row["outcome"] != "stale"]
    for day in gone:
        begin = datetime.combine(day, time(), UTC)
        hour = timedelta(hours=1)
        figures = queue.minutes(since=begin, until=begin + timedelta(days=1), step=hour)
        counted = sum(
            m.completed
            + m.retried
            + m.failed
            + m.expired
            + m.deferred
            + m.given_back
            + m.cancelled
            + m.lapsed
            + m.redriven
            + m.discarded
            for m in figures
        )
        assert counted == sum(at.date() == day for at in ended), day
