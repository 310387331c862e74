"""Files of an older version, whose history had fewer columns, stay valid beside new ones."""

from datetime import timedelta

import pyarrow as pa
import pytest

from laneway.lake import Lake, columns
from laneway.lake.catalog import Tenant
from laneway.lake.columns import HISTORY, checksum
from laneway.lake.rewrite import erase
from tests.lake.test_at_once import STORY, lake

__all__ = ["lake"]


def age(lake: Lake) -> str:
    """The first file is as a version wrote it that did not know the last column."""
    first = lake.catalog.files()[0]
    rows = lake.folder.read_table(first.path).drop_columns([HISTORY.names[-1]])
    size = lake.folder.write_table(rows, first.path)
    older = first._replace(checksum=checksum(rows), size=size)
    with lake.catalog.transaction() as store:
        store.tell("forget_files", lake=lake.catalog.lake, paths=[first.path])
        store.tell("note_file", lake=lake.catalog.lake, **older._asdict())
    return first.path


def test_they_are_verified_and_left_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.sync(100)
    path = age(lake)
    assert lake.verify(everything=True).damaged[0].path == path, "no version had these columns"
    lake.sync()
    path = age(lake)
    monkeypatch.setattr(columns, "VERSIONS", (len(HISTORY) - 1, len(HISTORY)))
    assert lake.verify(everything=True).damaged == []
    lake.compact(timedelta(0))
    assert lake.verify(everything=True).damaged == []
    assert lake.folder.exists(path) and lake.folder.count(path) > 0
    total = sum(lake.folder.count(file.path) for file in lake.folder.history_files())
    assert total == STORY.history.num_rows


def test_a_tenant_is_erased_from_them(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.sync(100)
    path = age(lake)
    monkeypatch.setattr(columns, "VERSIONS", (len(HISTORY) - 1, len(HISTORY)))
    channel = lake.folder.read_table(path)["channel"][0].as_py()
    assert erase(lake.catalog, lake.folder, Tenant(channel)).found_again == 0
    assert lake.verify(everything=True).damaged == []


def test_missing_columns_are_null() -> None:
    old = STORY.history.drop_columns(HISTORY.names[-2:])
    new = columns.widened(old)
    assert new.column_names == HISTORY.names
    assert new[HISTORY.names[-1]].null_count == old.num_rows
    assert isinstance(new, pa.Table)
