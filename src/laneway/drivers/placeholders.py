"""``$1`` placeholders in the words of other drivers. Quoted names and literals are left alone."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from laneway.plan import Statement

_TOKEN = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|\$(\d+)""")


@lru_cache(maxsize=512)
def percent(sql: str) -> tuple[str, tuple[int, ...]]:
    """``%s`` for each, and which parameter stands at each place, from 0."""
    order: list[int] = []

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0].replace("%", "%%")
        order.append(int(match[1]) - 1)
        return "%s"

    return _TOKEN.sub(replace, sql), tuple(order)


@lru_cache(maxsize=512)
def named(sql: str) -> str:
    """``:p1`` for each; a colon elsewhere is escaped, as SQLAlchemy's text() wants it."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0].replace(":", "\\:")
        return f":p{match[1]}"

    return _TOKEN.sub(replace, sql)


@lru_cache(maxsize=512)
def numbered(sql: str) -> str:
    """``?1`` for each, as SQLite calls a parameter by its number."""
    return _TOKEN.sub(lambda match: match[0] if match[1] is None else f"?{match[1]}", sql)


def unformatted(statement: Statement) -> str:
    """For a driver that is given no parameters and so formats nothing: a percent sign is one."""
    if statement.percent and not statement.params:
        return statement.sql.replace("%%", "%")
    return statement.sql


def in_order(params: Sequence[Any], order: Sequence[int]) -> list[Any]:
    return [params[place] for place in order]
