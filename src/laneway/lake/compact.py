"""Merges the files of each old day into one, and removes files that the catalog does not know."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa

from .catalog import Catalog, CatalogFile
from .folder import Folder
from .verify import finish_compactions, problem_with, sweep

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Compacted:
    days: int
    files: int


def compact(
    catalog: Catalog, folder: Folder, *, older: timedelta, say: Progress = lambda text: None
) -> Compacted:
    """Compacts days that ended more than ``older`` ago, if all their batches are verified and their
    files are intact."""
    finish_compactions(catalog, folder)
    before = catalog.ended_before(older)
    open_batches = {batch.number for batch in catalog.batches("planned", "written")}
    by_day: dict[date, list[CatalogFile]] = defaultdict(list)
    for file in catalog.files():
        by_day[file.day].append(file)
    days = count = 0
    for day, files in sorted(by_day.items()):
        busy = any(set(file.batches) & open_batches for file in files)
        if day >= before or len(files) < 2 or busy or any(problem_with(folder, f) for f in files):
            continue
        if _merge(catalog, folder, day, files):
            days, count = days + 1, count + len(files)
            say(f"{day}: merged {len(files)} files")
    sweep(catalog, folder)
    return Compacted(days, count)


def _merge(catalog: Catalog, folder: Folder, day: date, files: list[CatalogFile]) -> bool:
    """The catalog changes in one transaction. Until then the new file is only staged; after that
    whoever comes next puts it in place. False if another compaction was faster."""
    rows = _read(folder, files)
    if rows is None:
        return False
    # It overwrites the first file: for a moment readers see old and new rows, but never neither.
    staged, size = folder.write_aside(rows, files[0].path)
    merged = CatalogFile(
        path=files[0].path,
        day=day,
        batches=sorted({batch for file in files for batch in file.batches}),
        rows=rows.num_rows,
        checksum=sum((file.checksum for file in files), Decimal(0)),
        size=size,
        staged=staged,
        replaces=[file.path for file in files],
    )
    noted = catalog.note_compacted(merged)
    finish_compactions(catalog, folder)
    folder.remove(staged)
    return noted


def _read(folder: Folder, files: list[CatalogFile]) -> pa.Table | None:
    """All rows in order; None if another compaction has begun to put its file in place."""
    try:
        rows = pa.concat_tables([folder.read_table(file.path) for file in files])
    except FileNotFoundError:
        return None
    if rows.num_rows != sum(file.rows for file in files):
        return None
    return rows.sort_by([("xid", "ascending"), ("id", "ascending")])
