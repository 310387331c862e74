"""Writes a made-up history to a lake, or to the history of a queue's database."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from laneway.errors import InvalidOption
from laneway.lake.catalog import START, Catalog
from laneway.lake.errors import plainly
from laneway.lake.folder import Folder, batch_path, write_live
from laneway.lake.owner import has_owner

from .history import SyntheticHistory


@plainly()
def write_lake(
    made_up: SyntheticHistory, folder: Folder, batch: int = 0, *, live: bool = True
) -> int:
    """Writes one batch with a file for each day, and the messages that have not ended. Returns the
    number of days. A folder with batches of a real queue is refused."""
    if live and (has_owner(folder) or any(f.batch != batch for f in folder.history_files())):
        raise InvalidOption(f"{folder.root} has a real history: make one up in another folder")
    count = 0
    for day, rows in by_day(made_up.history):
        path = batch_path(day, batch)
        folder.remove(path)
        folder.write_table(rows, f"{path}/part-00000.parquet")
        count += 1
    if live:
        write_live(folder, made_up.live, made_up.until, {})
    return count


def write_database(made_up: SyntheticHistory, catalog: Catalog) -> None:
    """Adds to the empty history of a queue, one transaction per day; the database assigns ids."""
    if catalog.behind(START)[0]:
        raise InvalidOption("the queue has a real history: make one up in another schema")
    for day, rows in by_day(made_up.history):
        catalog.load(rows, date.fromisoformat(day))


def by_day(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows by day of ``ended_at`` (UTC), in order."""
    days = pc.cast(pc.floor_temporal(rows["ended_at"], unit="day"), pa.int64())
    for micros in sorted(pc.unique(days).to_pylist()):
        day = (datetime(1970, 1, 1) + timedelta(microseconds=micros)).date()  # noqa: DTZ001
        yield _named(day), rows.filter(pc.equal(days, micros))


def _named(day: date) -> str:
    return day.isoformat()
