"""The history of a message, and the settings."""

from datetime import timedelta
from typing import cast

from laneway.engines.times import micros, moment
from laneway.model import HistoryEntry, HistoryKept, Settings
from laneway.plan import Plan, Row

from .base import MysqlBase, repeatable
from .names import data, text


class MysqlStats(MysqlBase):
    @repeatable
    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._statement("history", message_id)
        return [entry_of(row) for row in rows]

    @repeatable
    def settings(self) -> Plan[Settings]:
        return (yield from self._settings())

    @repeatable
    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_initial: timedelta | None,
        backoff_max: timedelta | None,
        audit_days: int | None,
    ) -> Plan[Settings]:
        initial, maximum = (
            None if x is None else micros(x) for x in (backoff_initial, backoff_max)
        )
        yield self._statement(
            "configure", data(history), history_days, initial, maximum, audit_days
        )
        if history is not None and history != "all":
            yield self._statement("forget_kind_counts")
        return (yield from self._settings())

    def _settings(self) -> Plan[Settings]:
        ((history, days, initial, maximum, audit_days),) = yield self._statement("settings")
        backoff = (timedelta(microseconds=initial), timedelta(microseconds=maximum))
        return Settings(cast(HistoryKept, text(history)), days, *backoff, audit_days)


def entry_of(row: Row) -> HistoryEntry:
    """From a row of the statement history."""
    id, message_id, queue, channel, kind, priority, attempt, fence, worker, *rest = row
    outcome, reason, error_type, error, first, published, due, claimed, ended, *last = rest
    size, terminal, dead, started = last
    return HistoryEntry(
        id,
        message_id,
        text(queue) or "",
        text(channel) or "",
        text(kind) or "",
        priority,
        attempt,
        fence,
        text(worker),
        text(outcome) or "",
        text(reason),
        text(error_type),
        text(error),
        moment(first),
        moment(published),
        moment(due),
        moment(claimed),
        moment(ended),
        size,
        bool(terminal),
        bool(dead),
        moment(started),
    )
