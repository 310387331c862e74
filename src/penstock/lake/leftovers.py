"""What a killed sync or compaction left: finished, or swept."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from .books import Books
from .folder import Folder

# A process that has written for so long is taken for dead.
_DEAD_AFTER = timedelta(days=2)


def finish_compactions(books: Books, folder: Folder) -> None:
    """Those that the books know of and that were cut off before the files were in place."""
    for file in books.files():
        if file.staged is None:
            continue
        with suppress(FileNotFoundError):  # it is in place
            folder.move(file.staged, file.path)
        for path in file.replaces or ():
            if path != file.path:
                folder.remove(path.rpartition("/")[0])
        books.ask("settle_file", path=file.path)


def sweep(books: Books, folder: Folder) -> int:
    """Removes files that the books do not know; not while a batch is being written.

    The folder is looked at first: what another sync writes after that is none of our business, and
    what it wrote before is planned, or known."""
    found = folder.history_files()
    if books.batches("planned"):
        return 0
    known = {file.path for file in books.files()}
    strays = [file.path for file in found if file.path not in known]
    for path in strays:
        folder.remove(path.rpartition("/")[0])
    folder.sweep_aside(datetime.now(UTC) - _DEAD_AFTER)
    return len(strays)
