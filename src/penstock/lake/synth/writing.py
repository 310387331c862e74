"""Puts a made-up history into a lake, or into the history of a queue's database."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidOption
from penstock.lake.books import Books
from penstock.lake.faults import plainly
from penstock.lake.folder import Folder, batch_path
from penstock.lake.live import write_live
from penstock.lake.root import has_owner

from .history import Story


@plainly()
def write_lake(story: Story, folder: Folder, batch: int = 0, *, live: bool = True) -> int:
    """As one batch, a file a day, and what is alive at the end. Answers how many days there are.
    Nothing real is mixed with it: a folder that has batches of a queue is refused."""
    if live and (has_owner(folder) or any(f.batch != batch for f in folder.history_files())):
        raise InvalidOption(f"{folder.root} holds a real history: make one up in another folder")
    count = 0
    for day, rows in by_day(story.history):
        path = batch_path(day, batch)
        folder.remove(path)
        folder.write_table(rows, f"{path}/part-00000.parquet")
        count += 1
    if live:
        write_live(folder, story.live, story.until, {})
    return count


def write_database(story: Story, books: Books) -> None:
    """Into the empty history of a queue, a transaction a day; ids are the database's."""
    if books.ask("behind", from_xid=0, from_id=0)[0][0]:
        raise InvalidOption("the queue has a real history: make one up in another schema")
    for day, rows in by_day(story.history):
        books.load(rows, date.fromisoformat(day))


def by_day(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each day of ``ended_at`` (UTC), in their order."""
    days = pc.cast(pc.floor_temporal(rows["ended_at"], unit="day"), pa.int64())
    for micros in sorted(pc.unique(days).to_pylist()):
        day = (datetime(1970, 1, 1) + timedelta(microseconds=micros)).date()  # noqa: DTZ001
        yield _named(day), rows.filter(pc.equal(days, micros))


def _named(day: date) -> str:
    return day.isoformat()
