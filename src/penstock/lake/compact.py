"""Makes one file of the many that a day's batches left, and sweeps what belongs to nobody."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa

from .books import Books, File
from .folder import Folder
from .leftovers import finish_compactions, sweep
from .verify import problem_with

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Compacted:
    days: int
    files: int


def compact(
    books: Books, folder: Folder, *, older: timedelta, say: Progress = lambda text: None
) -> Compacted:
    """Days before ``older`` ago, all of whose batches are verified and whose files are whole."""
    finish_compactions(books, folder)
    before = books.ended_before(older)
    open_batches = {batch.number for batch in books.batches("planned", "written")}
    by_day: dict[date, list[File]] = defaultdict(list)
    for file in books.files():
        by_day[file.day].append(file)
    days = count = 0
    for day, files in sorted(by_day.items()):
        busy = any(set(file.batches) & open_batches for file in files)
        if day >= before or len(files) < 2 or busy or any(problem_with(folder, f) for f in files):
            continue
        if _merge(books, folder, day, files):
            days, count = days + 1, count + len(files)
            say(f"{day}: {len(files)} files are one")
    sweep(books, folder)
    return Compacted(days, count)


def _merge(books: Books, folder: Folder, day: date, files: list[File]) -> bool:
    """The books change in one transaction; the files before it are only aside, those after it are
    put in place by whoever comes next. False if somebody else was quicker."""
    rows = _read(folder, files)
    if rows is None:
        return False
    # Written over the first: readers see old and new for a moment, never neither.
    staged, size = folder.write_aside(rows, files[0].path)
    merged = File(
        path=files[0].path,
        day=day,
        batches=sorted({batch for file in files for batch in file.batches}),
        rows=rows.num_rows,
        checksum=sum((file.checksum for file in files), Decimal(0)),
        size=size,
        staged=staged,
        replaces=[file.path for file in files],
    )
    noted = _note(books, merged)
    finish_compactions(books, folder)
    folder.remove(staged)
    return noted


def _read(folder: Folder, files: list[File]) -> pa.Table | None:
    """All rows in their order; none if another compaction has begun to put its file in place."""
    try:
        rows = pa.concat_tables([folder.read_table(file.path) for file in files])
    except FileNotFoundError:
        return None
    if rows.num_rows != sum(file.rows for file in files):
        return None
    return rows.sort_by([("xid", "ascending"), ("id", "ascending")])


def _note(books: Books, merged: File) -> bool:
    paths = merged.replaces or []
    try:
        with books.transaction() as connection:
            if books.tell_on(connection, "forget_files", paths=paths) != len(paths):
                raise _Overtaken
            books.ask_on(connection, "note_compact", **merged._asdict())
    except _Overtaken:
        return False
    return True


class _Overtaken(Exception):
    """The books no longer know those files: what was changed is rolled back."""
