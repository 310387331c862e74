"""Filters of the query as part of the statement, if Spark's
``spark.sql.python.filterPushdown.enabled`` is on.

Spark does not evaluate a filter again that was taken here, so only those are taken that mean the
same in both.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from psycopg import sql
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from laneway.stores.postgresql import PostgresqlStore

from .reader import LanewayReader
from .tables import column_types

_COMPARING = {
    EqualTo: "{column} = {value}",
    EqualNullSafe: "{column} is not distinct from {value}",
    GreaterThan: "{column} > {value}",
    GreaterThanOrEqual: "{column} >= {value}",
    LessThan: "{column} < {value}",
    LessThanOrEqual: "{column} <= {value}",
}
_OF_TEXT = {
    StringStartsWith: "starts_with({column}, {value})",
    StringEndsWith: "right({column}, length({value})) = {value}",
    StringContains: "strpos({column}, {value}) > 0",
}
_OF_NULL = {IsNull: "{column} is null", IsNotNull: "{column} is not null"}
_FITS: dict[str, Callable[[Any], bool]] = {
    "bigint": lambda value: type(value) is int,
    "int": lambda value: type(value) is int,
    "smallint": lambda value: type(value) is int,
    "boolean": lambda value: type(value) is bool,
    "string": lambda value: type(value) is str and "\0" not in value,
    "timestamp": lambda value: isinstance(value, datetime) and value.tzinfo is not None,
}


class PushingReader(LanewayReader):
    """A reader that accepts filters."""

    pushed: tuple[sql.Composable, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Returns those that Spark has to evaluate itself."""
        native = column_types(self.what)
        types = {
            field.name: native[field.name]
            for field in self.schema
            if field.dataType.simpleString() == native[field.name]
        }
        for wanted in filters:
            condition = _condition(wanted, types)
            if condition is None:
                yield wanted
            else:
                self.pushed += (condition,)

    def conditions(self, store: PostgresqlStore) -> str:
        pushed = [condition.as_string(store.connection) for condition in self.pushed]
        return " and ".join([super().conditions(store), *pushed])


def _condition(wanted: Filter, types: dict[str, str]) -> sql.Composable | None:
    if isinstance(wanted, Not):
        inner = _condition(wanted.child, types)
        return None if inner is None else sql.SQL("not ({})").format(inner)
    path: tuple[str, ...] = getattr(wanted, "attribute", ())
    kind = types.get(path[0]) if len(path) == 1 else None
    if kind is None:
        return None
    return _on_column(wanted, path[0], kind)


def _on_column(wanted: Filter, name: str, kind: str) -> sql.Composable | None:
    # Spark compares text byte by byte.
    collate = sql.SQL(' collate "C"' if kind == "string" else "")
    column = sql.SQL("(h.{}{})").format(sql.Identifier(name), collate)
    if type(wanted) in _OF_NULL:
        return _filled(_OF_NULL[type(wanted)], column, None)
    value = getattr(wanted, "value", None)
    fits = _FITS.get(kind, lambda _: False)
    if isinstance(wanted, In):
        if not wanted.value or not all(fits(one) for one in wanted.value):
            return None
        equal = [_filled(_COMPARING[EqualTo], column, one) for one in wanted.value]
        return sql.SQL("({})").format(sql.SQL(" or ").join(equal))
    known = {**_COMPARING, **_OF_TEXT} if kind == "string" else _COMPARING
    text = known.get(type(wanted))
    return _filled(text, column, value) if text and fits(value) else None


def _filled(text: str, column: sql.Composable, value: object) -> sql.Composable:
    return sql.SQL(text).format(column=column, value=sql.Literal(value))
