"""Compares the lake's files with the history; finishes or removes what a killed command left."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from .catalog import Batch, Catalog, CatalogFile, files_of
from .columns import AT_ONCE, checksum_of, has_known_columns
from .folder import Folder

# A process that has been writing for longer is considered dead.
_DEAD_AFTER = timedelta(days=2)


def finish_compactions(catalog: Catalog, folder: Folder) -> None:
    """Finishes compactions that are in the catalog but whose files are not all in place."""
    for file in catalog.files():
        if file.staged is None:
            continue
        with suppress(FileNotFoundError):  # it is in place already
            folder.move(file.staged, file.path)
        for path in file.replaces or ():
            if path != file.path:
                folder.remove_file(path)
        catalog.settle_file(file.path)


def sweep(catalog: Catalog, folder: Folder) -> int:
    """Removes files that are not in the catalog; does nothing while a batch is being written.

    The folder is listed first: files that another sync writes later are not in the list, and those
    that it wrote before are planned or in the catalog."""
    found = folder.history_files()
    if catalog.batches("planned"):
        return 0
    known = {file.path for file in catalog.files()}
    strays = [file.path for file in found if file.path not in known]
    for path in strays:
        folder.remove_file(path)
    folder.sweep_aside(datetime.now(UTC) - _DEAD_AFTER)
    return len(strays)


Progress = Callable[[str], None]
_DONE = ("written", "verified", "purged")


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is missing or has other content than was written."""

    path: str
    batches: list[int]
    problem: str


@dataclass(frozen=True, slots=True)
class Verified:
    """``again``: batches that the next sync writes again. ``lost``: damaged batches whose rows are
    not in the history any more."""

    batches: int
    files: int
    damaged: list[Damage]
    again: list[int]
    lost: list[int]


def verify(
    catalog: Catalog, folder: Folder, *, everything: bool = False, say: Progress = lambda text: None
) -> Verified:
    """Checks what is written and not yet verified; with ``everything`` also what was verified."""
    finish_compactions(catalog, folder)
    states = _DONE if everything else ("written",)
    batches, files = catalog.batches(*states), catalog.files()
    judged: dict[str, Damage | None] = {}
    for batch in batches:
        mine = files_of(files, batch.number)
        for file in mine:
            if file.path not in judged:
                judged[file.path] = _damage(folder, file)
        if _whole(batch, mine) and not any(judged[file.path] for file in mine):
            catalog.mark(batch, "written", "verified")
        say(f"batch {batch.number}: {len(mine)} files")
    damaged = [damage for damage in judged.values() if damage]
    bad = {b for damage in damaged for b in damage.batches}
    bad |= {b.number for b in batches if not _whole(b, files_of(files, b.number))}
    again, lost = write_again(catalog, bad)
    return Verified(len(batches), len(judged), damaged, again, lost)


def _whole(batch: Batch, mine: Sequence[CatalogFile]) -> bool:
    """Whether the catalog has files for all its rows."""
    return sum(file.rows for file in mine) >= batch.rows


def _damage(folder: Folder, file: CatalogFile) -> Damage | None:
    problem = problem_with(folder, file)
    return Damage(file.path, file.batches, problem) if problem else None


def write_again(catalog: Catalog, bad: set[int]) -> tuple[list[int], list[int]]:
    """Lets the next sync write damaged batches again, with all that share a compacted file.

    If rows of one of them are not in the history any more, all are left as they are.
    """
    if not bad:
        return [], []
    files = catalog.files()
    linked = set(bad)
    while more := {b for f in files if linked & set(f.batches) for b in f.batches} - linked:
        linked |= more
    if any(_is_gone(catalog, batch) for batch in catalog.batches(*_DONE) if batch.number in linked):
        return [], sorted(bad)
    catalog.replan(sorted(linked), [file.path for file in files if linked & set(file.batches)])
    return sorted(linked), []


def _is_gone(catalog: Catalog, batch: Batch) -> bool:
    """Whether some of its rows have been purged: a batch may span several days."""
    return catalog.count_rows(batch) < batch.rows


def problem_with(folder: Folder, file: CatalogFile) -> str | None:
    """What is wrong with a file; None if nothing is."""
    size = folder.size(file.path)
    if size is None:
        return "missing"
    try:
        rows, found = _read_back(folder, file.path)
    except (OSError, pa.ArrowException) as error:
        return f"unreadable: {str(error).splitlines()[0]}"
    if rows != file.rows:
        return f"{rows:,} rows where {file.rows:,} were written"
    return None if found == file.checksum else "different rows than were written"


def _read_back(folder: Folder, path: str) -> tuple[int, Decimal | None]:
    """The number of rows and their checksum; None if the columns are not those of the history."""
    rows, total, known = 0, Decimal(0), True
    for batch in folder.read_batches(path, AT_ONCE):
        rows += batch.num_rows
        known = known and has_known_columns(batch.schema)
        total += checksum_of([batch]) if known else 0
    return rows, total if known else None
