"""Finishes or removes what a killed sync or compaction left behind."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from .catalog import Catalog
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
                folder.remove(path.rpartition("/")[0])
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
        folder.remove(path.rpartition("/")[0])
    folder.sweep_aside(datetime.now(UTC) - _DEAD_AFTER)
    return len(strays)
