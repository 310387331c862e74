"""What operators look at: messages in any state, channels, history, totals, and settings."""

import json
from datetime import datetime, timedelta
from typing import Any

from laneway.inspection import (
    LOOK,
    HistoryPage,
    MessageFilter,
    MessageInfo,
    MessagePage,
    Totals,
    read_position,
)
from laneway.model import HistoryEntry, HistoryKept, Settings
from laneway.plan import Plan, Row

from .base import PostgresqlSql


class PostgresqlStats:
    """The history of a message, and settings."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._sql.statement("history", message_id)
        return [HistoryEntry(*row) for row in rows]

    def settings(self) -> Plan[Settings]:
        rows = yield self._sql.statement("settings")
        return Settings(*rows[0])

    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_initial: timedelta | None,
        backoff_max: timedelta | None,
        audit_days: int | None,
    ) -> Plan[Settings]:
        rows = yield self._sql.statement(
            "configure", history, history_days, backoff_initial, backoff_max, audit_days
        )
        return Settings(*rows[0])


_HEADERS = 14
_NEXT = 24  # columns of MessageInfo, before those of the page


class PostgresqlInspect:
    """What operators look at: messages in any state, channels, history, totals."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[MessagePage]:
        by = (wanted.queue, wanted.channel, wanted.kind, wanted.state)
        rows = yield self._sql.statement_now("messages", *by, after, limit, LOOK)
        next, looked = rows[0][_NEXT:] if rows else (None, 0)
        found = [_info(row[:_NEXT]) for row in rows if row[0] is not None]
        return MessagePage(found, next, looked)

    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._sql.statement_now("message", message_id)
        return _info(rows[0]) if rows else None

    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._sql.statement("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    def saved_state(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._sql.statement("saved_state", message_id)
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        if position is None:
            rows = yield self._sql.statement("history_end")
            return HistoryPage([], f"{rows[0][0]}.0")
        rows = yield self._sql.statement("history_since", *read_position(position, 2), limit)
        if not rows:
            return HistoryPage([], position)
        return HistoryPage([HistoryEntry(*row[1:]) for row in rows], f"{rows[-1][0]}.{rows[-1][1]}")

    def totals(self) -> Plan[Totals]:
        rows = yield self._sql.statement("totals")
        return Totals(*rows[0])

    def clock(self) -> Plan[datetime]:
        rows = yield self._sql.statement_now("clock")
        return rows[0][0]  # type: ignore[no-any-return]


def _info(row: Row) -> MessageInfo:
    values: list[Any] = list(row)
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return MessageInfo(*values)
