"""Writes the history to the lake, batch by batch; trying again writes the same files."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from laneway.errors import LakeMismatch

from .catalog import Batch, Catalog, CatalogFile
from .columns import checksum
from .folder import Folder, batch_path, by_day, write_live
from .owner import note_owner
from .verify import finish_compactions, problem_with, sweep, write_again

BATCH_ROWS = 100_000
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Synced:
    batches: int
    rows: int


def sync(
    catalog: Catalog,
    folder: Folder,
    *,
    batch_rows: int = BATCH_ROWS,
    say: Progress = lambda text: None,
) -> Synced:
    """Writes all settled rows, then the messages that have not ended. It continues where a killed
    sync stopped."""
    finish_compactions(catalog, folder)
    batches = rows = 0
    while batch := _next(catalog, batch_rows):
        if not batches:
            note_owner(catalog, folder)
        write_batch(catalog, folder, batch)
        batches, rows = batches + 1, rows + batch.rows
        say(
            f"batch {batch.number}: {batch.rows:,} rows, ended {batch.last_ended_at:%Y-%m-%d %H:%M}"
        )
    sweep(catalog, folder)
    snapshot_live(catalog, folder)
    return Synced(batches, rows)


def _next(catalog: Catalog, batch_rows: int) -> Batch | None:
    """The oldest batch that is not written, else a new one, else None."""
    planned = catalog.batches("planned")
    if planned:
        return planned[0]
    number, end = catalog.last()
    catalog.plan(number + 1, end, batch_rows)
    return next(iter(catalog.batches("planned")), None)


def write_batch(catalog: Catalog, folder: Folder, batch: Batch) -> None:
    """Files first, then the catalog: a file that it does not know is overwritten or removed."""
    rows = catalog.history_rows(batch)
    files = [_write_aside(folder, batch.number, day, part) for day, part in by_day(rows)]
    try:
        found = sum(file.rows for file in files), sum(file.checksum for file in files)
        # Another sync may have been faster, and its files may be part of a compacted one by now; or
        # rows of the batch were erased.
        if batch in catalog.batches("planned"):
            _check_same(batch, found)
            _put_in_place(catalog, folder, batch, files)
    finally:
        for file in files:
            folder.remove(str(file.staged))


def _check_same(batch: Batch, found: tuple[int, object]) -> None:
    if found != (batch.rows, batch.checksum):
        raise LakeMismatch(
            f"batch {batch.number} has {found[0]:,} rows where {batch.rows:,} were planned, or "
            "different ones: the history was changed; nothing was recorded, find out why first. "
            "If a channel was erased meanwhile, run laneway lake erase for it again"
        )


def _put_in_place(catalog: Catalog, folder: Folder, batch: Batch, files: list[CatalogFile]) -> None:
    noted = False
    try:
        for file in files:
            folder.move(str(file.staged), file.path)
        noted = catalog.note_written(batch, files)
    except FileNotFoundError:  # whoever erased rows has removed what was staged with them
        if batch in catalog.batches("planned"):
            raise
    if not noted:
        _take_back(catalog, folder, files)


def _take_back(catalog: Catalog, folder: Folder, files: list[CatalogFile]) -> None:
    """Another sync was faster after all. If rows were erased since, ours have gone over its files,
    or lie where nobody knows them."""
    known = {file.path: file for file in catalog.files()}
    for file in files:
        theirs = known.get(file.path)
        if theirs is None:
            folder.remove_file(file.path)
        elif problem_with(folder, theirs):
            folder.remove_file(file.path)
            write_again(catalog, set(theirs.batches))


def _write_aside(folder: Folder, batch: int, day: str, rows: pa.Table) -> CatalogFile:
    path = f"{batch_path(day, batch)}/part-00000.parquet"
    aside, size = folder.write_aside(rows, path)
    day_of_rows = date.fromisoformat(day)
    return CatalogFile(path, day_of_rows, [batch], rows.num_rows, checksum(rows), size, aside)


def snapshot_live(catalog: Catalog, folder: Folder) -> None:
    """Writes the messages that have not ended, and the queue's own counts at that time."""
    seen_at = catalog.now()
    write_live(folder, catalog.live_rows(seen_at), seen_at, catalog.queue_stats())
