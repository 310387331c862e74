"""Whether a folder is a lake, and whose: said before anything is done in it."""

import json

from penstock.errors import InvalidOption, LakeMismatch

from .books import Books
from .folder import Folder, LakeFile

# Made-up days of a demo lie behind all that a sync would number, so that none of them meet.
MADE_UP = 999_999_999_999
_PARTS = ("history", "live")
_OWNER = "_lake.json"


def check_is_lake(folder: Folder) -> None:
    """For those who only read it."""
    names = folder.names("")
    if any(part in names for part in _PARTS):
        return
    if names:
        raise InvalidOption(f"{folder.root} is not a lake: it has neither history nor live in it")
    raise InvalidOption(f"there is no lake at {folder.root}: penstock lake sync makes one")


def check_may_be_lake(folder: Folder) -> None:
    """For those who write: a lake, or nothing yet."""
    names = folder.names("")
    if names and not any(part in names for part in (*_PARTS, "_staging", _OWNER)):
        raise InvalidOption(
            f"{folder.root} is not empty and not a lake: choose another folder for it"
        )


def check_is_of(books: Books, folder: Folder) -> None:
    """The folder is the one of these books: what they do not know would be swept, and may be all
    that is left of a history."""
    found = folder.history_files()
    if found:
        _check_owner(books, folder)
        _check_known(books, folder, found)
    elif books.files():
        raise LakeMismatch(
            f"the books of {books.lake!r} name files, but {folder.root} has none of them: give its "
            "folder, or another --name for a second lake; if the files are lost, penstock lake "
            "verify --all has them written again as far as the history goes"
        )


def check_owner(books: Books, folder: Folder) -> None:
    """For those who only look at files: it is not the lake of others."""
    if folder.history_files():
        _check_owner(books, folder)


def note_owner(books: Books, folder: Folder) -> None:
    """Says in the folder whose lake it is; before the first file is written."""
    mine = _mark(books)
    if mine is not None and folder.read_json(_OWNER) != mine:
        folder.write_text(json.dumps(mine, indent=1), _OWNER)


def has_owner(folder: Folder) -> bool:
    return folder.exists(_OWNER)


def _check_owner(books: Books, folder: Folder) -> None:
    if has_owner(folder) and folder.read_json(_OWNER) != _mark(books):
        raise LakeMismatch(
            f"{folder.root} is not the lake of these books ({books.lake!r}), but of another queue "
            "or --name, or the books were lost since; nothing was changed: give another folder, "
            "and keep this one"
        )


def _check_known(books: Books, folder: Folder, found: list[LakeFile]) -> None:
    """Files of batches that the books never planned: they are older than the lake, or others'."""
    last, _ = books.last()
    unknown = [file for file in found if last < file.batch < MADE_UP]
    if unknown:
        raise LakeMismatch(
            f"{folder.root} holds {len(unknown):,} files that the books of {books.lake!r} do not "
            f"know, such as {unknown[0].path}: it is another lake, or the database was restored "
            "from before they were written; nothing was changed: give another folder and --name, "
            "and keep this one"
        )


def _mark(books: Books) -> dict[str, str] | None:
    """The first batch tells queues apart: its checksum is of ids and times, and it never goes."""
    first = next(iter(books.batches()), None)
    return first and {"lake": books.lake, "first_batch": f"{first.rows} {first.checksum}"}
