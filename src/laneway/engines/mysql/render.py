"""MySQL's side of :mod:`laneway.sqlfile`: the tables' prefix, ``%s``, and lists as tables.

``$1:ids``, ``$1:keys`` and ``$1:pairs`` stand for a table of what the parameter lists: numbers
(column id), bytes (column id, in hexadecimal), and pairs (columns id and fence); ``$1:names`` for
one of longer bytes; ``$1:lanes`` for one of pairs of bytes; ``$1:nodes`` for one of nodes of flows
as they shall be, ``$1:new_nodes`` and ``$1:edges`` for new ones. Every
statement that locks rows by a list joins such a table, so that it looks the rows up one by one.
With a plain ``in (…)`` the server may scan a small table from end to end and wait for rows that
others hold. ``$1:numbers`` stands for numbers with commas between, and ``$1:sql`` for a piece of
SQL: both are part of the text, which costs less than parameters do.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from laneway.plan import Statement
from laneway.sqlfile import Piece, pieces, statements

_PACKAGE = __package__
FOLDER = files(_PACKAGE)

_COLUMNS = {
    "ids": "id bigint path '$'",
    "keys": "id char(32) path '$'",
    "names": "id varchar(840) path '$'",
    "lanes": "limits varchar(840) path '$[0]', channel char(32) path '$[1]'",
    "pairs": "id bigint path '$[0]', fence bigint path '$[1]'",
    "nodes": "id bigint path '$[0]', pending int path '$[1]', missed int path '$[2]', "
    "children int path '$[3]', state varchar(16) path '$[4]', turned int path '$[5]'",
    "new_nodes": "id bigint path '$[0]', pending int path '$[1]', children int path '$[2]', "
    "run_when varchar(16) path '$[3]'",
    "edges": "parent bigint path '$[0]', number int path '$[1]', child bigint path '$[2]', "
    "strict int path '$[3]', place int path '$[4]'",
}
# MySQL locks no rows where a table function is joined directly: it takes a query around it.
_LIST = "/*!80000 (select * from */ json_table(%s, '$[*]' columns (@)) /*!80000 l) */"
_TABLE_FORMS = {form: _LIST.replace("@", columns) for form, columns in _COLUMNS.items()}
_TABLE = re.compile(r"`laneway_(\w+)`")


def render(text: str, prefix: str) -> str:
    """The text with this prefix in place of ``laneway``."""
    quoted = prefix.replace("`", "``")
    return _TABLE.sub(lambda match: f"`{quoted}_{match[1]}`", text)


def template(name: str) -> str:
    """The named statement as it is in its file, without comments."""
    return statements(_PACKAGE)[name]


def statement(name: str, prefix: str, params: Sequence[Any]) -> Statement:
    """The named statement with these parameters."""
    texts, values = _filled(name, prefix, params)
    return Statement("".join(texts), values, percent=True)


def union(name: str, prefix: str, rows: Sequence[Sequence[Any]]) -> Statement:
    """The named query once for each row of parameters, combined with ``union all``."""
    queries, values = [], []
    for row in rows:
        texts, more = _filled(name, prefix, row)
        queries.append("".join(texts))
        values += more
    return Statement("\nunion all\n".join(queries), values, percent=True)


def _filled(name: str, prefix: str, params: Sequence[Any]) -> tuple[list[str], list[Any]]:
    texts: list[str] = []
    values: list[Any] = []
    for text, parameter, form in _pieces(name, prefix):
        texts.append(text)
        if parameter is None:
            continue
        value = params[int(parameter) - 1]
        if form is None:
            texts.append("%s")
            values.append(value)
        elif form in _TABLE_FORMS:
            texts.append(_TABLE_FORMS[form])
            values.append(_json_list(value))
        elif form == "numbers":
            texts.append(",".join(map(str, map(int, value))))
        elif form == "sql":
            texts.append(value.replace("%", "%%"))
        else:
            texts.append(_placeholders(value))
            values += _flat(value)
    return texts, values


@cache
def _pieces(name: str, prefix: str) -> tuple[Piece, ...]:
    # Cut first: the prefix may look like a parameter.
    return tuple(
        piece._replace(text=render(piece.text, prefix).replace("%", "%%"))
        for piece in pieces(template(name))
    )


def _json_list(items: Sequence[Any]) -> str:
    """In ASCII, so that a connection's character set cannot change it."""
    return json.dumps(items, separators=(",", ":"), default=bytes.hex)


def _flat(items: Sequence[Any]) -> Sequence[Any]:
    if isinstance(items[0], tuple):
        return [value for row in items for value in row]
    return items


def _placeholders(items: Sequence[Any]) -> str:
    if not isinstance(items[0], tuple):
        return ", ".join(["%s"] * len(items))
    row = "(" + ", ".join(["%s"] * len(items[0])) + ")"
    return ", ".join([row] * len(items))
