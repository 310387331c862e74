"""What every group of verbs stands on: the schema's SQL and the clock."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from penstock.names import check_schema
from penstock.plan import Statement

from . import sqltext

Clock = Callable[[], datetime]


class Base:
    """``clock`` replaces the database's clock, for tests."""

    def __init__(self, schema: str = "penstock", clock: Clock | None = None) -> None:
        self.schema = check_schema(schema)
        self._clock = clock

    def _say(self, name: str, *params: Any) -> Statement:
        return Statement(sqltext.query(name, self.schema), params)

    def _say_now(self, name: str, *params: Any) -> Statement:
        """With the time as the last parameter: null is the database's own clock."""
        now = self._clock() if self._clock else None
        return Statement(sqltext.query(name, self.schema), (*params, now))
