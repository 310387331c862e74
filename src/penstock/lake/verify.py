"""Reads the lake's files back and compares them with what the history held."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from .books import Batch, Books, File, overlapping
from .checksum import AT_ONCE, checksum_of
from .columns import HISTORY
from .folder import Folder
from .leftovers import finish_compactions

Progress = Callable[[str], None]
_DONE = ("written", "verified", "purged")


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is not what it should be."""

    path: str
    batches: list[int]
    problem: str


@dataclass(frozen=True, slots=True)
class Verified:
    """``again``: batches that the next sync writes again. ``lost``: damaged ones whose rows are no
    longer in the history."""

    batches: int
    files: int
    damaged: list[Damage]
    again: list[int]
    lost: list[int]


def verify(
    books: Books, folder: Folder, *, everything: bool = False, say: Progress = lambda text: None
) -> Verified:
    """What is written and not yet verified; with ``everything`` also what was verified before."""
    finish_compactions(books, folder)
    states = _DONE if everything else ("written",)
    batches, files = books.batches(*states), books.files()
    judged: dict[str, Damage | None] = {}
    for batch in batches:
        mine = overlapping(files, batch.number)
        for file in mine:
            if file.path not in judged:
                judged[file.path] = _damage(folder, file)
        if _whole(batch, mine) and not any(judged[file.path] for file in mine):
            books.mark(batch, "written", "verified")
        say(f"batch {batch.number}: {len(mine)} files")
    damaged = [damage for damage in judged.values() if damage]
    bad = {b for damage in damaged for b in damage.batches}
    bad |= {b.number for b in batches if not _whole(b, overlapping(files, b.number))}
    again, lost = write_again(books, bad)
    return Verified(len(batches), len(judged), damaged, again, lost)


def _whole(batch: Batch, mine: Sequence[File]) -> bool:
    """The books know files for all its rows."""
    return sum(file.rows for file in mine) >= batch.rows


def _damage(folder: Folder, file: File) -> Damage | None:
    problem = problem_with(folder, file)
    return Damage(file.path, file.batches, problem) if problem else None


def write_again(books: Books, bad: set[int]) -> tuple[list[int], list[int]]:
    """Lets the next sync write damaged batches, and all that share a compacted file with them.

    Where the rows of one of them are no longer in the history, all are left as they are.
    """
    if not bad:
        return [], []
    files = books.files()
    linked = set(bad)
    while more := {b for f in files if linked & set(f.batches) for b in f.batches} - linked:
        linked |= more
    if any(_is_gone(books, batch) for batch in books.batches(*_DONE) if batch.number in linked):
        return [], sorted(bad)
    with books.transaction() as connection:
        paths = [file.path for file in files if linked & set(file.batches)]
        books.ask_on(connection, "forget_files", paths=paths)
        books.ask_on(connection, "replan", batches=sorted(linked))
    return sorted(linked), []


def _is_gone(books: Books, batch: Batch) -> bool:
    """Whether some of its rows have been purged: a batch may span several days."""
    return bool(books.ask("count_batch", **batch.range)[0][0] < batch.rows)


def problem_with(folder: Folder, file: File) -> str | None:
    """What is wrong with a file, or None."""
    size = folder.size(file.path)
    if size is None:
        return "missing"
    try:
        rows, found = _read_back(folder, file.path)
    except (OSError, pa.ArrowException) as error:
        return f"unreadable: {str(error).splitlines()[0]}"
    if rows != file.rows:
        return f"{rows:,} rows where {file.rows:,} were written"
    return None if found == file.checksum else "other rows than were written"


def _read_back(folder: Folder, path: str) -> tuple[int, Decimal | None]:
    """How many rows, and their checksum; none if the columns are not those of the history."""
    rows, total = 0, Decimal(0)
    known = True
    for batch in folder.read_batches(path, AT_ONCE):
        rows += batch.num_rows
        known = known and batch.schema.names == HISTORY.names
        total += checksum_of([batch]) if known else 0
    return rows, total if known else None
