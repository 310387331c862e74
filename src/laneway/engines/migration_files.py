"""Numbered migrations: each engine has one folder of SQL files per migration."""

from collections.abc import Callable, Iterator, Sequence
from importlib.resources.abc import Traversable
from typing import NamedTuple

from laneway.errors import InvalidOption, SchemaTooNew, shown

_ENDS = {"tables.sql": 0, "views.sql": 2}


class Migration(NamedTuple):
    """One folder ``0001_name``, with folders in it: files called ``tables.sql`` first, those called
    ``views.sql`` last, the others between them; of each, those of a folder before those of the
    folders in it, by name."""

    number: int
    name: str
    text: str

    def rendered(self, render: Callable[[str], str], note: str) -> str:
        """The script for one schema; ``note`` is the statement that records that it was run."""
        # A migration's name is a folder of this package: letters and underscores.
        note = note.replace("$1", str(self.number)).replace("$2", f"'{self.name}'")
        header = f"-- Laneway, migration {self.number:04}: {self.name}"
        return "\n".join([header, render(self.text), render(note) + ";\n"])


def read_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """All migrations of this version, in order, with the schema still called ``laneway``."""
    folders = sorted(folder.iterdir(), key=lambda one: one.name)
    return tuple(_read(one) for one in folders if one.name[:4].isdigit())


def between(known: Sequence[Migration], since: int, to: int | None) -> list[Migration]:
    """Those after version ``since`` and up to ``to``, or up to the newest."""
    newest = known[-1].number
    if to is not None and (type(to) is not int or not 1 <= to <= newest):
        raise InvalidOption(
            f"version is {shown(to)}: this Laneway has the schema's versions 1 to {newest}"
        )
    return [one for one in known if since < one.number <= (to or newest)]


def check_known(version: int, known: int, schema: str) -> None:
    """Refuse a schema that a newer Laneway created."""
    if version > known:
        raise SchemaTooNew(
            f"schema {schema!r} has version {version}, this Laneway knows {known}: "
            "upgrade the package"
        )


def _read(folder: Traversable) -> Migration:
    number, _, name = folder.name.partition("_")
    found = sorted(_sql_files(folder), key=lambda one: _order(one[0]))
    texts = [file.read_text(encoding="utf-8") for _, file in found]
    return Migration(int(number), name, "\n".join(texts))


def _order(path: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
    return _ENDS.get(path[-1], 1), len(path), path


def _sql_files(
    folder: Traversable, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Traversable]]:
    """In the folder and in those that are in it, each with its path."""
    for one in folder.iterdir():
        if one.is_dir():
            yield from _sql_files(one, (*path, one.name))
        elif one.name.endswith(".sql"):
            yield (*path, one.name), one
