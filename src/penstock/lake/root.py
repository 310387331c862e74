"""Whether a folder is a lake: said before anything is done in it."""

from penstock.errors import InvalidOption, LakeMismatch

from .books import Books
from .folder import Folder

_PARTS = ("history", "live")


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
    if names and not any(part in names for part in (*_PARTS, "_staging")):
        raise InvalidOption(
            f"{folder.root} is not empty and not a lake: choose another folder for it"
        )


def check_is_of(books: Books, folder: Folder) -> None:
    """The books know files, so the folder has some: else it is another one, or was lost."""
    if books.files() and not folder.history_files():
        raise LakeMismatch(
            f"the books of {books.lake!r} name files, but {folder.root} has none of them: give its "
            "folder, or another --name for a second lake; if the files are lost, penstock lake "
            "verify --all has them written again as far as the history goes"
        )
