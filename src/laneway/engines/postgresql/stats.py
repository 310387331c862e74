"""The history of a message, and settings."""

from datetime import timedelta

from laneway.model import HistoryEntry, HistoryKept, Settings
from laneway.plan import Plan

from .base import PostgresqlBase


class PostgresqlStats(PostgresqlBase):
    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._statement("history", message_id)
        return [HistoryEntry(*row) for row in rows]

    def settings(self) -> Plan[Settings]:
        rows = yield self._statement("settings")
        return Settings(*rows[0])

    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_initial: timedelta | None,
        backoff_max: timedelta | None,
        audit_days: int | None,
    ) -> Plan[Settings]:
        rows = yield self._statement(
            "configure", history, history_days, backoff_initial, backoff_max, audit_days
        )
        return Settings(*rows[0])
