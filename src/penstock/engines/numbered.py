"""Numbered migrations as folders of SQL files: how every engine keeps and numbers its own."""

from collections.abc import Callable
from importlib.resources.abc import Traversable
from typing import NamedTuple

from penstock.errors import SchemaTooNew


class Migration(NamedTuple):
    """One folder ``0001_name``: its tables first, then whatever uses them, its views last."""

    number: int
    name: str
    text: str

    def rendered(self, render: Callable[[str], str], note: str) -> str:
        """The script for one schema; ``note`` is the statement that says that it was run."""
        # A migration's name is a folder of this package: letters and underscores.
        note = note.replace("$1", str(self.number)).replace("$2", f"'{self.name}'")
        header = f"-- Penstock, migration {self.number:04}: {self.name}"
        return "\n".join([header, render(self.text), render(note) + ";\n"])


def read_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """All that this version knows, in order, with the schema still called ``penstock``."""
    folders = sorted(folder.iterdir(), key=lambda one: one.name)
    return tuple(_read(one) for one in folders if one.name[:4].isdigit())


def check_known(version: int, known: int, schema: str) -> None:
    """A schema that a newer Penstock made is left alone."""
    if version > known:
        raise SchemaTooNew(
            f"schema {schema!r} has version {version}, this Penstock knows {known}: "
            "upgrade the package"
        )


def _read(folder: Traversable) -> Migration:
    number, _, name = folder.name.partition("_")
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    texts = [file.read_text(encoding="utf-8") for file in sorted(files, key=_order)]
    return Migration(int(number), name, "\n".join(texts))


def _order(file: Traversable) -> tuple[int, str]:
    place = ("tables.sql", "", "views.sql")
    return place.index(file.name) if file.name in place else 1, file.name
