"""A statement as SQLAlchemy wants it: named binds without types, so that it casts none of them."""

from functools import lru_cache
from typing import Any

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.types import NullType

from penstock.plan import Statement

from .placeholders import named


def bound(statement: Statement) -> tuple[TextClause, dict[str, Any]]:
    params = {f"p{number}": value for number, value in enumerate(statement.params, 1)}
    return _text(statement.sql, len(params)), params


@lru_cache(maxsize=512)
def _text(sql: str, count: int) -> TextClause:
    binds = [bindparam(f"p{number}", type_=NullType()) for number in range(1, count + 1)]
    return text(named(sql)).bindparams(*binds)
