"""What every group of verbs stands on: the tables' SQL and the clock."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from penstock.plan import Plan, Statement

from . import sqltext
from .names import check_prefix
from .packets import ANY_SERVER, check_fits, parts
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

    def _say_rows(self, name: str, rows: Sequence[Sequence[Any]]) -> Plan[None]:
        """An insert of rows, in their order, in as many statements as it takes."""
        for part in parts(rows):
            yield self._say(name, part)

    def _check_fits(self, values: Iterable[bytes | None]) -> Plan[None]:
        """Raises PayloadTooLarge before a statement that the server would not even read: it ends
        the connection instead of answering."""
        largest = max(values, key=lambda value: len(value or b""), default=None)
        if largest is not None and 4 * len(largest) > ANY_SERVER:
            rows = yield self._say("packet")
            check_fits(largest, int(rows[0][0]))

    def _now(self) -> int | None:
        """The time to use, or None for the database's own clock."""
        return micros(self._clock()) if self._clock else None
