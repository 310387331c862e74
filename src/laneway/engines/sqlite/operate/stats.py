"""History and settings."""

from datetime import timedelta
from typing import Any

from laneway.engines.sqlite.base import SqliteBase
from laneway.engines.times import micros, moment
from laneway.model import HistoryEntry, HistoryKept, Settings
from laneway.plan import Plan, Row

_TIMES, _FLAGS, _STARTED = slice(13, 18), slice(19, 21), 21  # of a history entry


class SqliteStats(SqliteBase):
    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._read_outside("history", message_id)
        return [read_entry(row) for row in rows]

    def settings(self) -> Plan[Settings]:
        rows = yield self._read_outside("settings")
        return _settings(rows[0])

    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_initial: timedelta | None,
        backoff_max: timedelta | None,
        audit_days: int | None,
    ) -> Plan[Settings]:
        lengths = micros(backoff_initial), micros(backoff_max)
        rows = yield self._statement("configure", history, history_days, *lengths, audit_days)
        if history is not None:
            gap = "close_gap" if history == "all" else "open_gap"
            yield self._statement(gap, self._now())
            if history != "all":
                yield self._statement("forget_kind_counts")
        return _settings(rows[0])


def read_entry(row: Row) -> HistoryEntry:
    values: list[Any] = list(row)
    values[_TIMES] = map(moment, values[_TIMES])
    values[_FLAGS] = map(bool, values[_FLAGS])
    values[_STARTED] = moment(values[_STARTED])
    return HistoryEntry(*values)


def _settings(row: Row) -> Settings:
    history, days, first, most, audit_days = row
    backoff = (timedelta(microseconds=first), timedelta(microseconds=most))
    return Settings(history, days, *backoff, audit_days)
