"""Limits that channels share."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from laneway.errors import InvalidOption
from laneway.limits import Adapt, Breaker
from laneway.model import KEEP
from laneway.plan import Plan, as_dict
from laneway.shared_limits import (
    LimitNote,
    PlainLimits,
    SharedLimit,
    SharedLimitChange,
    shared_limit_of,
)

from .base import PostgresqlSql


class PostgresqlSharedLimits:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql
        self.plain_limits = PlainLimits()

    def set_shared_limit(self, name: str, change: SharedLimitChange) -> Plan[SharedLimit]:
        plain = (None if value is KEEP else value for value in change[:3])
        adapt, breaker = change.adapt, change.breaker
        bounds = (adapt.min, adapt.max) if isinstance(adapt, Adapt) else (None, None)
        rule: tuple[Any, ...] = (None, None, None, None)
        if isinstance(breaker, Breaker):
            rule = (breaker.failures, breaker.window, breaker.minimum, breaker.pause)
        values = (change.named, *plain, *bounds, *rule)
        self.plain_limits.forget(name)
        rows = yield self._sql.statement_now("set_shared_limit", name, *values)
        if not rows:
            raise InvalidOption(
                f"the burst does not go with the rate of limit {name!r}: give a rate too"
            )
        row = rows[0]
        return shared_limit_of((name, *row[:3], None, 0, 0, *row[3:], 0, 0))

    def note_limits(self, notes: Sequence[LimitNote]) -> Plan[list[bool]]:
        columns = (list(column) for column in zip(*notes, strict=True))
        plain = {row[0] for row in (yield self._sql.statement_now("note_limits", *columns))}
        self.plain_limits.learn(plain)
        return [note.name not in plain for note in notes]

    def rest_shared_limit(self, name: str, length: timedelta) -> Plan[None]:
        yield self._sql.statement_now("rest_shared_limit", name, length)

    def remove_shared_limit(self, name: str) -> Plan[bool]:
        rows = yield self._sql.statement("remove_shared_limit", name)
        return bool(rows[0][0])

    def shared_limits(self) -> Plan[list[SharedLimit]]:
        rows = yield self._sql.statement_now("shared_limits")
        return [shared_limit_of(row) for row in rows]

    def limited_channels(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, str]]:
        rows = yield self._sql.statement("channels_behind_limits", queue, list(channels))
        return as_dict(rows)
