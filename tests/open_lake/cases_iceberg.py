"""The lake as a table of Apache Iceberg, by pyiceberg and its catalog in SQLite."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

from laneway import Queue
from laneway.errors import InvalidOption, LakeMismatch
from laneway.lake import Lake, iceberg
from laneway.lake.synth import SyntheticHistory
from tests.open_lake.fixtures import BATCH, positions, rows_of, survives

NAME = "shop.history"
STEPS: list[tuple[Any, str]] = [(Table, "_do_commit"), (PyArrowFile, "create")]


@pytest.fixture(autouse=True)
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pyiceberg finds the catalog: its own settings."""
    place = tmp_path / "warehouse"
    place.mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", f"sqlite:///{tmp_path / 'catalog.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__WAREHOUSE", f"file://{place}")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # it read them when imported
    return place


@pytest.fixture
def lake(url: str, tmp_path: Path) -> Lake:
    made = Lake(url, tmp_path / "lake")
    made.sync(BATCH)
    made.verify()
    return made


def table(name: str = NAME) -> Table:
    return load_catalog("default").load_table(name)


def check(lake: Lake, name: str = NAME) -> None:
    """The table has the lake's rows, each once."""
    assert positions(table(name).scan().to_arrow()) == positions(rows_of(lake))


def test_every_batch_is_one_snapshot_that_names_it(lake: Lake, story: SyntheticHistory) -> None:
    done = lake.iceberg(NAME)
    assert (done.rows, done.waiting) == (story.history.num_rows, 0)
    check(lake)
    named = [snapshot.summary["laneway.batch"] for snapshot in table().snapshots()]
    assert named == [str(batch.number) for batch in lake.catalog.batches()]
    rows = {row["id"]: row for row in table().scan().to_arrow().to_pylist()}
    for row in rows_of(lake).to_pylist():
        mine = rows[row["id"]]
        assert mine.pop("day") == row["ended_at"].date() and mine == row
    assert lake.iceberg(NAME).batches == 0


def test_only_what_is_verified(url: str, tmp_path: Path) -> None:
    lake = Lake(url, tmp_path / "lake")
    batches = lake.sync(BATCH).batches
    assert lake.iceberg(NAME) == iceberg.Appended(0, 0, batches)
    lake.verify()
    first = lake.catalog.files()[0]
    rows = lake.folder.read_table(first.path)
    lake.folder.write_table(rows.slice(1), first.path)
    with pytest.raises(LakeMismatch, match="nothing was added"):
        lake.iceberg(NAME)
    assert table().current_snapshot() is None


def test_compacted_files_and_expired_snapshots_change_nothing(lake: Lake) -> None:
    lake.iceberg(NAME)
    lake.compact(timedelta(0))
    open_table = table()
    old = [one.snapshot_id for one in open_table.snapshots()[:-1]]
    open_table.maintenance.expire_snapshots().by_ids(old).commit()
    assert lake.iceberg(NAME).batches == 0
    check(lake)


def test_killed_at_every_step(lake: Lake) -> None:
    """Before and behind every file and every commit: nothing is lost and nothing doubled."""
    lake.compact(timedelta(0))
    count, survived = 0, False
    while not survived:
        count += 1
        name = f"shop.history_{count}"
        survived = survives(_appending(lake, name), STEPS, count)
        lake.iceberg(name)
        check(lake, name)
    assert count > 10


def _appending(lake: Lake, name: str) -> Callable[[], object]:
    return lambda: lake.iceberg(name)


def test_two_at_once_do_not_double(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other commits the same batch between our reading and our commit."""
    original, other = iceberg._commit, Lake(lake._url, lake.folder.root)

    def later(*arguments: Any) -> bool:
        monkeypatch.setattr(iceberg, "_commit", original)
        other.iceberg(NAME)
        return original(*arguments)

    monkeypatch.setattr(iceberg, "_commit", later)
    assert lake.iceberg(NAME).batches == 0
    check(lake)


def test_a_later_version_adds_a_column(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = iceberg.table_schema()
    older = pa.schema([f for f in schema if f.name != "dead"])
    with monkeypatch.context() as before:
        before.setattr(iceberg, "table_schema", lambda: older)
        iceberg._open(iceberg.IcebergTable("default", NAME))
    assert "dead" not in table().schema().column_names
    lake.iceberg(NAME)
    assert table().schema().column_names[-1] == "dead"
    check(lake)


def test_a_table_of_another_lake_is_refused(lake: Lake, url: str, tmp_path: Path) -> None:
    lake.iceberg(NAME)
    second = Lake(url, tmp_path / "second", name="second")
    second.sync(BATCH)
    second.verify()
    with pytest.raises(LakeMismatch, match="use another table"):
        second.iceberg(NAME)
    check(lake)


def test_a_tenant_is_erased_there_too(lake: Lake, warehouse: Path) -> None:
    lake.iceberg(NAME)
    channel = rows_of(lake)["channel"][0].as_py()
    done = lake.erase(channel)
    assert done.found_again == 0 and done.tables == [f"default: {NAME}"]
    _check_gone(lake, warehouse, channel)


def test_erasing_is_killed_at_every_third_step(lake: Lake, warehouse: Path) -> None:
    lake.iceberg(NAME)
    channel = rows_of(lake)["channel"][0].as_py()
    steps = [*STEPS, (type(table().io), "delete")]
    for count in range(1, 40, 3):
        if survives(lambda: lake.erase(channel), steps, count):
            break
    assert count > 4
    lake.erase(channel)
    _check_gone(lake, warehouse, channel)


def _check_gone(lake: Lake, warehouse: Path, channel: str) -> None:
    """Every file of the table is read, whether a snapshot needs it or not."""
    check(lake)
    found = table()
    assert len(found.snapshots()) == 1
    files = [path for path in warehouse.rglob("*") if path.is_file()]
    assert [path for path in files if path.suffix == ".parquet"]
    for path in files:
        if path.suffix == ".parquet":
            assert channel not in pq.read_table(path)["channel"].to_pylist()
        assert channel.encode() not in path.read_bytes(), path


def _channels(file: Path) -> list[str]:
    found: list[str] = pq.read_table(file)["channel"].to_pylist()
    return found


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def _zero_the_pages(file: Path) -> None:
    """Its footer can be read, its rows cannot."""
    found = file.read_bytes()
    file.write_bytes(found[:4] + bytes(len(found) // 2) + found[4 + len(found) // 2 :])


@pytest.mark.parametrize("damage", [_truncate, _zero_the_pages, Path.unlink])
@pytest.mark.parametrize("known", [True, False], ids=["of the tenant", "of others"])
def test_a_file_that_cannot_be_read_proves_nothing(
    lake: Lake, damage: Callable[[Path], object], known: bool
) -> None:
    lake.iceberg(NAME)
    channels = rows_of(lake)["channel"].to_pylist()
    # The table's statistics say that nobody needs to look for the second one.
    channel = channels[0] if known else max(channels) + "~"
    paths = [task.file.file_path for task in table().scan().plan_files()]
    files = [Path(path.removeprefix("file://")) for path in paths]
    chosen = next(f for f in files if not known or channel in _channels(f))
    intact = chosen.read_bytes()
    damage(chosen)
    for _ in range(2):
        with pytest.raises(LakeMismatch, match="not proved") as refused:
            lake.erase(channel)
        assert chosen.name in str(refused.value) and "restore" in str(refused.value)
    assert lake._url is not None
    with Queue(lake._url, upkeep_every=None) as queue:
        assert {entry.action for entry in queue.audit()} == {"erase"}
    # What it says to do.
    chosen.write_bytes(intact)
    assert lake.erase(channel).found_again == 0
    check(lake)


def test_a_table_that_is_damaged_is_dropped_and_filled_anew(lake: Lake, warehouse: Path) -> None:
    lake.iceberg(NAME)
    channel = rows_of(lake)["channel"][0].as_py()
    for file in warehouse.rglob("*.parquet"):
        _truncate(file)
    with pytest.raises(LakeMismatch, match="drop the table"):
        lake.erase(channel)
    load_catalog("default").drop_table(NAME)
    lake.iceberg(NAME)
    assert lake.erase(channel).found_again == 0
    _check_gone(lake, warehouse, channel)


def test_branches_that_keep_old_rows_are_refused(lake: Lake) -> None:
    lake.iceberg(NAME)
    found = table()
    snapshot = found.current_snapshot()
    assert snapshot
    found.manage_snapshots().create_tag(snapshot.snapshot_id, "kept").commit()
    channel = rows_of(lake)["channel"][0].as_py()
    with pytest.raises(InvalidOption, match="kept"):
        lake.erase(channel)
