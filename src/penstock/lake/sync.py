"""Brings the history into the lake: batch by batch, the same files however often it is tried."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from penstock.errors import LakeMismatch

from .books import Batch, Books, File
from .checksum import checksum
from .columns import HISTORY, LIVE
from .folder import Folder, batch_path
from .leftovers import finish_compactions, sweep
from .live import write_live
from .root import note_owner
from .synth.writing import by_day

BATCH_ROWS = 100_000
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Synced:
    batches: int
    rows: int


def sync(
    books: Books, folder: Folder, *, batch_rows: int = BATCH_ROWS, say: Progress = lambda text: None
) -> Synced:
    """All that is settled, then what is alive. A sync that was killed is taken up where it was."""
    finish_compactions(books, folder)
    batches = rows = 0
    while batch := _next(books, batch_rows):
        if not batches:
            note_owner(books, folder)
        write_batch(books, folder, batch)
        batches, rows = batches + 1, rows + batch.rows
        say(
            f"batch {batch.number}: {batch.rows:,} rows, ended {batch.last_ended_at:%Y-%m-%d %H:%M}"
        )
    sweep(books, folder)
    snapshot_live(books, folder)
    return Synced(batches, rows)


def _next(books: Books, batch_rows: int) -> Batch | None:
    """The oldest batch that is not written, else a new one, else none."""
    planned = books.batches("planned")
    if planned:
        return planned[0]
    number, end = books.last()
    books.plan(number + 1, end, batch_rows)
    return next(iter(books.batches("planned")), None)


def write_batch(books: Books, folder: Folder, batch: Batch) -> None:
    """Files first, books second: a file that the books do not know is written over or swept."""
    rows = books.fetch("columns", HISTORY, rows=batch.rows, **batch.range)
    files = [_write_aside(folder, batch.number, day, part) for day, part in by_day(rows)]
    found = sum(file.rows for file in files), sum(file.checksum for file in files)
    if found != (batch.rows, batch.checksum):
        raise LakeMismatch(
            f"batch {batch.number} has {found[0]:,} rows where {batch.rows:,} were planned, or "
            "other ones: somebody changed the history; nothing was noted, look before you go on"
        )
    # Another sync may have been quicker, and its files may be part of a larger one by now.
    if batch.number in {planned.number for planned in books.batches("planned")}:
        for file in files:
            folder.move(str(file.staged), file.path)
        _note(books, batch, files)
    for file in files:
        folder.remove(str(file.staged))


def _note(books: Books, batch: Batch, files: list[File]) -> None:
    with books.transaction() as connection:
        change = {"batch": batch.number, "before": "planned", "state": "written"}
        if not books.tell_on(connection, "mark", **change):
            return
        for file in files:
            books.ask_on(
                connection,
                "note_file",
                path=file.path,
                day=file.day,
                batches=file.batches,
                rows=file.rows,
                checksum=file.checksum,
                size=file.size,
            )


def _write_aside(folder: Folder, batch: int, day: str, rows: pa.Table) -> File:
    path = f"{batch_path(day, batch)}/part-00000.parquet"
    aside, size = folder.write_aside(rows, path)
    return File(path, date.fromisoformat(day), [batch], rows.num_rows, checksum(rows), size, aside)


def snapshot_live(books: Books, folder: Folder) -> None:
    """What has not ended, and the queue's own counts, at one moment or nearly."""
    seen_at = books.now()
    rows = books.fetch("live", LIVE, seen_at=seen_at)
    names = ("waiting", "scheduled", "leased", "dead")
    numbers: dict[str, dict[str, Any]] = {
        queue: dict(zip(names, counts, strict=True)) for queue, *counts in books.ask("numbers")
    }
    write_live(folder, rows, seen_at, numbers)
