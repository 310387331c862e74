"""A file of the lake is read back a few rows at a time: how large it is does not matter."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laneway.lake.catalog import CatalogFile
from laneway.lake.columns import AT_ONCE, checksum
from laneway.lake.folder import Folder
from laneway.lake.synth import SyntheticHistory
from laneway.lake.verify import problem_with


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "lake"))


@pytest.fixture
def usual() -> Iterator[pa.MemoryPool]:
    """Given back to Arrow afterwards."""
    pool = pa.default_memory_pool()
    yield pool
    pa.set_memory_pool(pool)


def written(folder: Folder, rows: pa.Table, path: str) -> CatalogFile:
    size = folder.write_table(rows, path)
    return CatalogFile(path, date(2026, 11, 15), [0], rows.num_rows, checksum(rows), size)


def test_the_last_row_of_a_large_file_counts(folder: Folder, story: SyntheticHistory) -> None:
    rows = pa.concat_tables([story.history] * 6)
    assert rows.num_rows > 3 * AT_ONCE
    file = written(folder, rows, "history/day=2026-11-15/batch=000000000000/part-00000.parquet")
    assert problem_with(folder, file) is None
    last = pc.equal(pa.array(range(rows.num_rows)), rows.num_rows - 1)
    attempts = pc.if_else(last, pc.add(rows["attempt"], 1), rows["attempt"])
    place = rows.schema.get_field_index("attempt")
    other = rows.set_column(place, rows.schema.field(place), attempts)
    folder.write_table(other, file.path)
    assert problem_with(folder, file) == "different rows than were written"


def test_memory_does_not_follow_the_file(
    folder: Folder, story: SyntheticHistory, usual: pa.MemoryPool
) -> None:
    peaks = []
    for times in (3, 30):
        file = written(folder, pa.concat_tables([story.history] * times), f"{times}.parquet")
        pool = pa.proxy_memory_pool(usual)
        pa.set_memory_pool(pool)
        assert problem_with(folder, file) is None
        peaks.append(pool.max_memory())
    assert peaks[1] < 2 * peaks[0], peaks
