"""Two processes in one lake at once, stopped where it matters: the other one runs in between."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import Queue
from laneway.lake import Lake
from laneway.lake.folder import Folder
from laneway.lake.synth import synthesize
from laneway.lake.synth.history import write_database
from laneway.lake.verify import sweep
from tests.lake.conftest import NOW
from tests.lake.test_sync import rows_of
from tests.place import Place
from tests.stores import Databases

STORY = synthesize(300, until=NOW, days=3)
ROWS = STORY.history.num_rows


@pytest.fixture
def lake(sqlite_files: Databases, tmp_path: Path) -> Lake:
    place = Place(sqlite_files.create_database(tmp_path.name), "mine")
    with Queue(place.url, schema=place.schema, upkeep_every=None) as queue:
        queue.install()
    lake = Lake(place.url, tmp_path / "lake", schema=place.schema)
    write_database(STORY, lake.catalog)
    return lake


def before_call(
    monkeypatch: pytest.MonkeyPatch, method: str, count: int, other: Callable[[], object]
) -> None:
    """``other`` runs once, before the n-th call of a method of a folder."""
    original, calls = getattr(Folder, method), [0]

    def trapped(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == count:
            other()
        return original(*arguments, **named)

    monkeypatch.setattr(Folder, method, trapped)


def check(lake: Lake) -> None:
    assert lake.verify(everything=True).damaged == []
    rows = rows_of(lake)
    assert rows.num_rows == len(set(rows["id"].to_pylist())) == ROWS
    assert list(Path(lake.folder.root, "_staging").iterdir()) == []


@pytest.mark.parametrize("point", ["write_aside:1", "write_aside:2", "move:3"])
def test_a_sync_that_another_one_overtakes(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    method, count = point.split(":")
    before_call(monkeypatch, method, int(count), lambda: lake.sync(100))
    lake.sync(100)
    lake.sync(100)
    check(lake)


def test_a_sync_that_was_asleep_does_not_write_over_what_was_compacted_since(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others() -> None:
        lake.sync(20)
        lake.verify()
        assert lake.compact(timedelta(0)).days > 1

    before_call(monkeypatch, "write_aside", 1, others)
    lake.sync(20)
    check(lake)


@pytest.mark.parametrize(
    "point",
    ["read_batches:1", "read_table:1", "read_table:2", "write_aside:1", "move:1", "remove:1"],
)
def test_a_compaction_that_another_one_overtakes(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    lake.sync(100)
    lake.verify()
    method, count = point.split(":")
    before_call(monkeypatch, method, int(count), lambda: lake.compact(timedelta(0)))
    lake.compact(timedelta(0))
    check(lake)


def test_files_that_another_sync_writes_are_not_swept(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_call(monkeypatch, "history_files", 1, lambda: lake.sync(100))
    assert sweep(lake.catalog, lake.folder) == 0
    check(lake)


def test_what_a_killed_process_left_aside_is_swept(lake: Lake) -> None:
    lake.sync()
    left = Path(lake.folder.root, "_staging", "0123~history")
    left.write_text("half")
    lake.sync()
    assert left.exists(), "it may be somebody who is at it"
    two_days_ago = NOW.timestamp() - 3 * 86_400
    os.utime(left, (two_days_ago, two_days_ago))
    lake.sync()
    assert not left.exists()
