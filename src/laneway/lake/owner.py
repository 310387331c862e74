"""Checks that a folder is a lake, and whose, before anything is done in it."""

import json
from datetime import UTC

from laneway.errors import InvalidOption, LakeMismatch

from .catalog import Catalog
from .folder import Folder, LakeFile

# The number of a batch of made-up rows: far above those that a sync uses, so that they never meet.
MADE_UP = 999_999_999_999
_PARTS = ("history", "live")
_OWNER = "_lake.json"


def check_is_lake(folder: Folder) -> None:
    """For commands that only read it."""
    names = folder.names("")
    if any(part in names for part in _PARTS):
        return
    if names:
        raise InvalidOption(f"{folder.root} is not a lake: it has neither history nor live in it")
    raise InvalidOption(f"there is no lake at {folder.root}: laneway lake sync makes one")


def check_may_be_lake(folder: Folder) -> None:
    """For commands that write: it must be a lake, or empty."""
    names = folder.names("")
    if names and not any(part in names for part in (*_PARTS, "_staging", _OWNER)):
        raise InvalidOption(f"{folder.root} is not a lake and not empty: use another folder")


def check_is_of(catalog: Catalog, folder: Folder) -> None:
    """Checks that the folder belongs to this catalog. Files that are not in the catalog would be
    removed, and they may be all that is left of a history."""
    found = folder.history_files()
    if found:
        _check_owner(catalog, folder)
        _check_known(catalog, folder, found)
    elif catalog.files():
        raise LakeMismatch(
            f"the catalog of {catalog.lake!r} has files, but {folder.root} has none of them: use "
            "the right folder, or another --name for a second lake; if the files are lost, run "
            "laneway lake verify --all: the next sync writes what is still in the history"
        )


def check_owner(catalog: Catalog, folder: Folder) -> None:
    """For commands that only read files: it must not be the lake of another queue."""
    if folder.history_files():
        _check_owner(catalog, folder)


def note_owner(catalog: Catalog, folder: Folder) -> None:
    """Records in the folder whose lake it is, before the first file is written."""
    mine = lake_mark(catalog)
    if mine is not None and folder.read_json(_OWNER) != mine:
        folder.write_text(json.dumps(mine, indent=1), _OWNER)


def has_owner(folder: Folder) -> bool:
    return folder.exists(_OWNER)


def _check_owner(catalog: Catalog, folder: Folder) -> None:
    if has_owner(folder) and folder.read_json(_OWNER) != lake_mark(catalog):
        raise LakeMismatch(
            f"{folder.root} is not the lake of this catalog ({catalog.lake!r}): it belongs to "
            "another queue or --name, or the catalog was lost; nothing was changed: use another "
            "folder, and keep this one"
        )


def _check_known(catalog: Catalog, folder: Folder, found: list[LakeFile]) -> None:
    """Refuses files of batches that this catalog never planned: they are of another lake, or the
    catalog is older than they are."""
    last, _ = catalog.last()
    unknown = [file for file in found if last < file.batch < MADE_UP]
    if unknown:
        raise LakeMismatch(
            f"{folder.root} has {len(unknown):,} files that are not in the catalog of "
            f"{catalog.lake!r}, such as {unknown[0].path}: it is another lake, or the database was "
            "restored from before they were written; nothing was changed: use another folder and "
            "--name, and keep this one"
        )


def lake_mark(catalog: Catalog) -> dict[str, str] | None:
    """Queues are told apart by the end of their first batch: the catalog always keeps it, and it
    stays when rows of the batch are erased."""
    first = next(iter(catalog.batches()), None)
    if first is None:
        return None
    times = [at.astimezone(UTC).isoformat() for at in (first.first_ended_at, first.last_ended_at)]
    ends = f"{first.to_id} {' '.join(times)}"
    return {"lake": catalog.lake, "first_batch": ends}
