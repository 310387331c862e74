"""The base class of all groups of verbs: the schema's statements and the clock."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from laneway.names import check_schema
from laneway.plan import Statement

from .render import only_reads, statement

Clock = Callable[[], datetime]


class PostgresqlBase:
    """``clock`` replaces the database's clock, for tests."""

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        self.schema = check_schema(schema)
        self._clock = clock

    def _statement(self, name: str, *params: Any) -> Statement:
        return Statement(statement(name, self.schema), params, reads=only_reads(name))

    def _statement_now(self, name: str, *params: Any) -> Statement:
        """With the time as the last parameter; null means the database's clock."""
        now = self._clock() if self._clock else None
        return Statement(statement(name, self.schema), (*params, now), reads=only_reads(name))
