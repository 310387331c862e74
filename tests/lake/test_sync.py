"""The lake holds exactly the history, however often it is synced and whatever killed it."""

import multiprocessing
import signal
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from laneway import Queue
from laneway.errors import LakeMismatch, SchemaMissing
from laneway.lake import Lake
from laneway.lake.folder import by_day
from laneway.lake.synth import SyntheticHistory
from tests.lake import victim
from tests.place import Place

KEEP = timedelta(days=1)
# Processes that have all modules loaded from the start: there are many of them.
_VICTIMS = multiprocessing.get_context("forkserver")
_VICTIMS.set_forkserver_preload(["tests.lake.victim"])


def rows_of(lake: Lake) -> pa.Table:
    files = lake.folder.history_files()
    tables = [lake.folder.read_table(file.path) for file in files]
    return pa.concat_tables(tables).sort_by("id")


def in_database(lake: Lake) -> int:
    rows = lake.catalog.ask("behind", from_xid=0, from_id=0)
    return int(rows[0][0])


def states(lake: Lake) -> list[str]:
    return [b.state for b in lake.catalog.batches("planned", "written", "verified", "purged")]


def test_all_rows_and_columns_arrive_once(told: Lake, story: SyntheticHistory) -> None:
    synced = told.sync(700)
    assert synced.rows == story.history.num_rows and synced.batches == 5
    again = told.sync()
    assert (again.rows, again.batches) == (0, 0)
    found = rows_of(told).drop_columns(["id", "xid"])
    assert found.equals(story.history.drop_columns(["id", "xid"]))


def test_rows_lie_in_the_day_they_ended(told: Lake) -> None:
    told.sync(700)
    for file in told.folder.history_files():
        days = {
            at.date().isoformat()
            for at in told.folder.read_table(file.path)["ended_at"].to_pylist()
        }
        assert days == {file.day}


def test_sync_verify_purge_leave_what_is_young(told: Lake, story: SyntheticHistory) -> None:
    told.sync(700)
    assert set(states(told)) == {"written"}
    checked = told.verify()
    assert checked.damaged == [] and set(states(told)) == {"verified"}
    days = told.purge(KEEP)
    gone = sum(day.rows for day in days if day.stays is None)
    assert gone > 0
    assert in_database(told) == story.history.num_rows - gone
    assert rows_of(told).num_rows == story.history.num_rows
    assert "purged" in states(told) and "verified" in states(told)


def test_a_dry_run_says_why_and_does_nothing(told: Lake, story: SyntheticHistory) -> None:
    told.sync(700)
    before = told.purge(KEEP, dry_run=True)
    reasons = {day.stays for day in before}
    assert any("not verified" in (reason or "") for reason in reasons)
    assert any("newer" in (reason or "") for reason in reasons)
    told.verify()
    assert any(day.stays is None for day in told.purge(KEEP, dry_run=True))
    assert in_database(told) == story.history.num_rows


def test_nothing_is_purged_before_it_is_in_the_lake(told: Lake, story: SyntheticHistory) -> None:
    reasons = [day.stays for day in told.purge(KEEP)]
    assert None not in reasons and any("not in the lake" in (r or "") for r in reasons)
    assert in_database(told) == story.history.num_rows


def test_a_registered_reader_holds_the_purge_back(told: Lake, place: Place) -> None:
    told.sync()
    told.verify()
    with psycopg.connect(place.url) as connection:
        call = psycopg.sql.SQL("select {}.read_history_v1('audit', 1, 0)")
        connection.execute(call.format(psycopg.sql.Identifier(place.schema)))
    assert all(
        (day.stays and "audit" in day.stays) or "newer" in (day.stays or "")
        for day in told.purge(KEEP)
    )
    assert list(told.status().readers) == ["audit"]


def damage(lake: Lake, how: str) -> str:
    """Spoils the oldest file."""
    file = lake.folder.history_files()[0]
    path = Path(lake.folder.root) / file.path
    if how == "missing":
        path.unlink()
    elif how == "half":
        path.write_bytes(path.read_bytes()[: file.size // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flipped":
        content = bytearray(path.read_bytes())
        # More than one: statistics in the file's pages may change without changing a row.
        for place in range(len(content) // 3, len(content) // 3 + 256):
            content[place] ^= 0xFF
        path.write_bytes(bytes(content))
    else:
        table = lake.folder.read_table(file.path)
        lake.folder.write_table(changed(table), file.path)
    return file.path


def changed(table: pa.Table) -> pa.Table:
    """The same shape, and one value another."""
    workers: list[Any] = table["worker"].to_pylist()
    workers[0] = "somebody else"
    place = table.schema.get_field_index("worker")
    return table.set_column(place, table.schema.field("worker"), pa.array(workers, pa.string()))


@pytest.mark.parametrize("how", ["missing", "half", "empty", "flipped", "changed"])
def test_damage_is_found_nothing_of_it_is_purged_and_it_is_mended(
    told: Lake, story: SyntheticHistory, how: str
) -> None:
    told.sync(700)
    path = damage(told, how)
    checked = told.verify()
    assert [found.path for found in checked.damaged] == [path]
    assert checked.again and not checked.lost
    day = path.split("/")[1].removeprefix("day=")
    kept = {str(d.day): d.stays for d in told.purge(KEEP)}
    assert "not verified" in (kept[day] or "")
    told.sync()
    assert told.verify().damaged == []
    found = rows_of(told).drop_columns(["id", "xid"])
    assert found.equals(story.history.drop_columns(["id", "xid"]))


@pytest.mark.parametrize("how", ["missing", "changed"])
def test_damage_after_the_verification_still_stops_the_purge(
    told: Lake, story: SyntheticHistory, how: str
) -> None:
    told.sync(700)
    told.verify()
    path = damage(told, how)
    kept = {f"day={d.day}": d.stays for d in told.purge(KEEP)}
    assert "damaged" in (kept[path.split("/")[1]] or "")
    assert told.verify(everything=True).damaged


def test_damage_of_what_is_gone_is_told_as_lost(told: Lake) -> None:
    told.sync(700)
    told.verify()
    told.purge(KEEP)
    damage(told, "missing")
    checked = told.verify(everything=True)
    assert checked.lost and not checked.again
    assert told.sync().batches == 0


def test_compaction_keeps_every_row(told: Lake, story: SyntheticHistory) -> None:
    told.sync(300)
    told.verify()
    before = len(told.folder.history_files())
    done = told.compact(timedelta(0))
    assert done.days >= 3
    assert len(told.folder.history_files()) < before
    assert (
        rows_of(told).drop_columns(["id", "xid"]).equals(story.history.drop_columns(["id", "xid"]))
    )
    assert told.verify(everything=True).damaged == []
    assert any(day.stays is None for day in told.purge(KEEP))


def test_a_damaged_compacted_file_is_mended(told: Lake, story: SyntheticHistory) -> None:
    told.sync(300)
    told.verify()
    told.compact(timedelta(0))
    damage(told, "half")
    checked = told.verify(everything=True)
    assert checked.damaged and len(checked.again) > 1
    told.sync()
    assert told.verify().damaged == []
    assert rows_of(told).num_rows == story.history.num_rows


def test_rows_of_open_transactions_wait(told: Lake, queue: Queue, place: Place) -> None:
    """Somebody with a lower transaction number commits later: nothing of theirs may be missed."""
    told.sync()
    queue.publish({"n": 1})
    queue.publish({"n": 2})
    early, late = queue.claim(limit=2)
    with psycopg.connect(place.url) as open_one:
        early.complete(connection=open_one)
        late.complete()
        assert told.sync().rows == 0
        assert told.status().unsettled == 1
    assert told.sync().rows == 2


def test_what_is_alive_is_noted(told: Lake, queue: Queue) -> None:
    queue.publish({"n": 1}, channel="a")
    queue.publish({"n": 2}, channel="b", delay=timedelta(hours=1))
    told.sync()
    live = told.folder.read_table("live/snapshot.parquet").to_pylist()
    assert sorted((row["channel"], row["state"]) for row in live) == [
        ("a", "waiting"), ("b", "scheduled"),
    ]  # fmt: skip
    assert told.folder.read_json("live/numbers.json")["numbers"]["default"]["waiting"] == 1


def test_upkeep_keeps_old_days_for_the_lake(told: Lake, queue: Queue, place: Place) -> None:
    queue.configure(history_days=1)
    whole = in_database(told)
    told.sync()
    queue.upkeep()
    assert in_database(told) == whole, "written is not verified"
    told.verify()
    queue.upkeep()
    assert in_database(told) < whole, "verified days past the retention go"


def test_a_schema_without_a_catalog_says_what_to_do(
    queue: Queue, place: Place, tmp_path: Path
) -> None:
    with psycopg.connect(place.url) as connection:
        drop = psycopg.sql.SQL("drop table {}.lake_commit cascade")
        connection.execute(drop.format(psycopg.sql.Identifier(place.schema)))
    with pytest.raises(SchemaMissing, match="laneway install"):
        Lake(place.url, tmp_path, schema=place.schema).sync()


def run(lake: Lake, place: Place, step: str, point: str) -> None:
    """A process that kills itself with SIGKILL at the named call, and dies there for certain."""
    names = (place.url, place.schema, lake.catalog.lake, lake.folder.root, step, point)
    process = _VICTIMS.Process(target=victim.main, args=names)
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, "it did not come to that point"


SYNC_POINTS = [
    "ask:next_batch:1", "tell:plan_batch:1", "tell:plan_batch:2", "folder:write_aside:1",
    "folder:move:1", "folder:move:2", "tell:note_file:1", "tell:mark:1", "tell:mark:2",
]  # fmt: skip


@pytest.mark.parametrize("point", SYNC_POINTS)
def test_a_killed_sync_is_taken_up(
    told: Lake, story: SyntheticHistory, place: Place, point: str
) -> None:
    run(told, place, "sync", point)
    told.sync(700)
    assert told.verify().damaged == []
    assert (
        rows_of(told).drop_columns(["id", "xid"]).equals(story.history.drop_columns(["id", "xid"]))
    )


@pytest.mark.parametrize(
    "point",
    [
        "folder:write_aside:1",
        "tell:note_compacted:1",
        "folder:move:2",
        "folder:remove:1",
        "tell:settle_file:1",
    ],
)
def test_a_killed_compaction_is_finished(
    told: Lake, story: SyntheticHistory, place: Place, point: str
) -> None:
    told.sync(300)
    told.verify()
    run(told, place, "compact", point)
    told.sync()
    assert told.verify(everything=True).damaged == []
    assert (
        rows_of(told).drop_columns(["id", "xid"]).equals(story.history.drop_columns(["id", "xid"]))
    )


@pytest.mark.parametrize("point", ["ask:purge_day:1", "ask:purge_day:2", "tell:mark_purged:1"])
def test_a_killed_purge_loses_nothing(
    told: Lake, story: SyntheticHistory, place: Place, point: str
) -> None:
    told.sync(700)
    told.verify()
    run(told, place, "purge", point)
    told.purge(KEEP)
    assert told.verify(everything=True).damaged == []
    assert rows_of(told).num_rows == story.history.num_rows
    assert "planned" not in states(told) and "purged" in states(told)


@pytest.mark.parametrize("done", ["planned", "written"])
def test_a_purge_waits_for_the_other_lakes_of_the_queue(
    told: Lake, story: SyntheticHistory, place: Place, tmp_path: Path, done: str
) -> None:
    told.sync()
    told.verify()
    second = Lake(place.url, tmp_path / "second", schema=place.schema, name="second")
    if done == "planned":
        run(second, place, "sync", "folder:write_aside:1")
    else:
        second.sync()
    assert all(day.stays for day in told.purge(KEEP))
    second.sync()
    second.verify()
    assert rows_of(second).num_rows == story.history.num_rows
    assert not all(day.stays for day in told.purge(KEEP))


def test_a_dump_of_another_server_costs_no_history(
    told: Lake, queue: Queue, place: Place, story: SyntheticHistory, tmp_path: Path
) -> None:
    """There transactions had higher numbers, so rows of now lie before what the lake holds."""
    told.sync()
    told.verify()
    schema = psycopg.sql.Identifier(place.schema)
    with psycopg.connect(place.url) as connection:
        for text in (
            "update {}.history set xid = xid + 1000000000",
            "update {}.lake_commit set to_xid = to_xid + 1000000000",
        ):
            connection.execute(psycopg.sql.SQL(text).format(schema))
    for day, rows in by_day(story.history):
        told.catalog.load(rows, date.fromisoformat(day))
    whole = in_database(told)
    for step in (told.sync, told.status, lambda: told.purge(KEEP)):
        with pytest.raises(LakeMismatch, match="restored from another server's dump"):
            step()
    queue.configure(history_days=1)
    queue.upkeep()
    assert in_database(told) == whole == 2 * story.history.num_rows
    with psycopg.connect(place.url) as connection:
        for text in ("update {}.history set xid = 0", "delete from {}.lake_commit"):
            connection.execute(psycopg.sql.SQL(text).format(schema))
    new = Lake(place.url, tmp_path / "new", schema=place.schema, name="new")
    assert new.sync().rows == whole, "what docs/how-to/lake.md says to do"


@pytest.mark.parametrize("due", ["infinity", "20000-01-01 00:00Z", "0044-03-15 00:00Z BC"])
def test_a_time_that_arrow_cannot_read_holds_nothing_up(
    told: Lake, queue: Queue, place: Place, story: SyntheticHistory, due: str
) -> None:
    queue.publish(b"x")
    with psycopg.connect(place.url) as connection:
        for table in ("message", "history"):
            name = psycopg.sql.Identifier(place.schema, table)
            text = "update {0} set due = {1} where id = (select min(id) from {0})"
            changed = connection.execute(psycopg.sql.SQL(text).format(name, due))
            assert changed.rowcount == 1
    assert told.sync().rows == story.history.num_rows
    assert told.verify().damaged == []
