"""What every group of verbs stands on: the tables' SQL and the clock."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from penstock.plan import Statement

from . import sqltext
from .names import check_prefix
from .times import micros

Clock = Callable[[], datetime]


class Base:
    """``schema`` is the prefix of our tables in the connected database. ``clock`` replaces the
    database's clock, for tests."""

    def __init__(self, schema: str = "penstock", clock: Clock | None = None) -> None:
        self.schema = check_prefix(schema)
        self._clock = clock

    def _say(self, name: str, *params: Any) -> Statement:
        return sqltext.statement(name, self.schema, params)

    def _say_each(self, name: str, rows: Sequence[Sequence[Any]]) -> Statement:
        """The same query for every row of parameters, in one statement."""
        return sqltext.union(name, self.schema, rows)

    def _now(self) -> int | None:
        """The time to use, or None for the database's own clock."""
        return micros(self._clock()) if self._clock else None
