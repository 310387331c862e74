"""SQL files: named statements in a file beside the module that runs them.

A file holds blocks. Each begins with ``-- name: …``; comment lines in it are for readers only::

    -- name: add_lease
    -- $1: message id, $2: fence.
    insert into "laneway_lease" (message_id, fence) values ($1, $2)

Tables are written as an installation under the default name has them, so that a block can be
pasted into a shell; each dialect puts the real schema or prefix in their place.

A parameter is ``$1``, ``$2`` … (by position) or ``$queue`` (by name). It may say how it is put in:

``$1``           a value
``$1...``        a list: of values (``in ($1...)``) or of rows (``values $1...``)
``$1:form``      in a form of the dialect: ``$table:name`` an identifier, ``$filters:sql`` a
                 piece of SQL that is filled in already, ``$1:ids`` a table of numbers
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

_NAME = re.compile(r"--\s*name:\s*(\w+)\s*$")
# Not the dollars of $$ or $tag$, and not the colons of a cast: $1::text is a value.
_PARAMETER = re.compile(r"(?<![\w$])\$([a-z]\w*|\d+)(?![\w$])(\.\.\.|:[a-z]\w*)?")
_FILES_OF_THEIR_OWN = "migrations"
DIALECTS = ("postgresql", "mysql", "sqlite")


def dollar_quoted(text: str, tag: str) -> str:
    """The text as a literal of PostgreSQL in which nothing has to be escaped."""
    while f"${tag}$" in text:
        tag += "_"
    return f"${tag}${text}${tag}$"


class Piece(NamedTuple):
    """Text, and the parameter after it with its form; the last piece has no parameter."""

    text: str
    parameter: str | None = None
    form: str | None = None


@cache
def statements(package: str, dialect: str | None = None) -> Mapping[str, str]:
    """Every named statement in the SQL files of a package and the packages in it.

    A name stands for one statement in all of them. Folders called ``migrations`` are left out:
    their files are scripts. With a ``dialect``, files whose names end in others are left out:
    ``stage_mysql.sql`` is for MySQL, ``stage_mysql_sqlite.sql`` for both, ``stage.sql`` for all.
    """
    found: dict[str, str] = {}
    for file in _sql_files(files(package)):
        if dialect is not None and dialect not in _dialects(file.name):
            continue
        for name, text in read_blocks(file.read_text(encoding="utf-8")).items():
            if name in found:
                raise ValueError(f"{package}: two statements are called {name!r}")
            found[name] = text
    return MappingProxyType(found)


def read_blocks(text: str) -> dict[str, str]:
    """The blocks of a file by name, without comment lines; what is before the first is a header."""
    blocks: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if opening := _NAME.match(line):
            if opening[1] in blocks:
                raise ValueError(f"two statements are called {opening[1]!r}")
            lines = blocks[opening[1]] = []
        elif not line.startswith("--"):
            lines.append(line)
    return {name: "\n".join(lines).strip() for name, lines in blocks.items()}


@cache
def pieces(text: str) -> tuple[Piece, ...]:
    """The statement, cut at its parameters."""
    found, start = [], 0
    for match in _PARAMETER.finditer(text):
        form = match[2].removeprefix(":") if match[2] else None
        found.append(Piece(text[start : match.start()], match[1], form))
        start = match.end()
    return (*found, Piece(text[start:]))


def _dialects(file: str) -> tuple[str, ...]:
    """Those at the end of the file's name; all if there is none."""
    words = file.removesuffix(".sql").split("_")
    own = tuple(takewhile(DIALECTS.__contains__, reversed(words)))
    return own or DIALECTS


def _sql_files(folder: Traversable) -> list[Traversable]:
    found: list[Traversable] = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir() and entry.name != _FILES_OF_THEIR_OWN:
            found += _sql_files(entry)
        elif entry.name.endswith(".sql"):
            found.append(entry)
    return found
