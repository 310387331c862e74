"""A statement as SQLAlchemy wants it: named binds without types, so that it casts none of them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.types import NullType

from laneway.drivers.placeholders import named
from laneway.plan import Statement


def bound(statement: Statement) -> tuple[TextClause, dict[str, Any] | list[dict[str, Any]]]:
    if not statement.many:
        return _text(statement.sql, len(statement.params)), _named(statement.params)
    rows = [_named(row) for row in statement.params]
    return _text(statement.sql, len(rows[0])), rows


def _named(params: Sequence[Any]) -> dict[str, Any]:
    return {f"p{number}": value for number, value in enumerate(params, 1)}


@lru_cache(maxsize=512)
def _text(sql: str, count: int) -> TextClause:
    binds = [bindparam(f"p{number}", type_=NullType()) for number in range(1, count + 1)]
    return text(named(sql)).bindparams(*binds)
