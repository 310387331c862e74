"""SQL files: the tables' prefix in place of ``penstock``, and ``%s`` in place of ``$1``.

``$1...`` stands for a list: of values (``in ($1...)``) or of rows (``values $1...``), as many as
the parameter holds. ``$1:ids``, ``$1:keys`` and ``$1:pairs`` stand for a table of what the
parameter lists: numbers (column id), bytes (column id, in hexadecimal), and pairs (columns id and
fence). Whatever locks rows finds them from such a table, row by row: given a plain list, a small
table would be scanned from end to end, waiting for what others hold in it.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from penstock.plan import Statement

FOLDER = files(__package__)

_TOKEN = re.compile(r"--[^\n]*|\$(\d+)(\.\.\.|:ids|:keys|:pairs)?")
_LISTED = {
    ":ids": "json_table(%s, '$[*]' columns (id bigint path '$'))",
    ":keys": "json_table(%s, '$[*]' columns (id char(32) path '$'))",
    ":pairs": "json_table(%s, '$[*]' columns (id bigint path '$[0]', fence bigint path '$[1]'))",
}
_TABLE = re.compile(r"`penstock_(\w+)`")


class Piece(NamedTuple):
    """Text, and the parameter that follows it; the last piece has none."""

    text: str
    place: int | None
    form: str | None


def render(text: str, prefix: str) -> str:
    """The text for any legal prefix."""
    quoted = prefix.replace("`", "``")
    return _TABLE.sub(lambda match: f"`{quoted}_{match[1]}`", text)


def statement(name: str, prefix: str, params: Sequence[Any]) -> Statement:
    """The query in ``queries/<name>.sql``."""
    texts, values = _filled(name, prefix, params)
    return Statement("".join(texts), values, percent=True)


def union(name: str, prefix: str, rows: Sequence[Sequence[Any]]) -> Statement:
    """The same query once for each row of parameters, all in one statement."""
    parts, values = [], []
    for row in rows:
        texts, more = _filled(name, prefix, row)
        parts.append("".join(texts))
        values += more
    return Statement("\nunion all\n".join(parts), values, percent=True)


def template(name: str) -> str:
    """The query as it is in the file, without comments."""
    lines = (FOLDER / "queries" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--")).strip()


def _filled(name: str, prefix: str, params: Sequence[Any]) -> tuple[list[str], list[Any]]:
    texts: list[str] = []
    values: list[Any] = []
    for text, place, form in _pieces(name, prefix):
        texts.append(text)
        if place is None:
            continue
        value = params[place]
        if form is None:
            texts.append("%s")
            values.append(value)
        elif form in _LISTED:
            texts.append(_LISTED[form])
            values.append(_listed(value))
        else:
            texts.append(_places(value))
            values += _flat(value)
    return texts, values


def _listed(items: Sequence[Any]) -> str:
    """As JSON, which every character set of a connection writes alike."""
    if items and isinstance(items[0], bytes):
        items = [item.hex() for item in items]
    return json.dumps(items, separators=(",", ":"))


def _flat(items: Sequence[Any]) -> Sequence[Any]:
    if isinstance(items[0], tuple):
        return [value for row in items for value in row]
    return items


def _places(items: Sequence[Any]) -> str:
    if not isinstance(items[0], tuple):
        return ", ".join(["%s"] * len(items))
    row = "(" + ", ".join(["%s"] * len(items[0])) + ")"
    return ", ".join([row] * len(items))


@cache
def _pieces(name: str, prefix: str) -> tuple[Piece, ...]:
    text = render(template(name), prefix).replace("%", "%%")
    pieces, start = [], 0
    for match in _TOKEN.finditer(text):
        if match[1] is None:
            continue
        pieces.append(Piece(text[start : match.start()], int(match[1]) - 1, match[2]))
        start = match.end()
    return (*pieces, Piece(text[start:], None, None))
