"""Numbers, history and settings."""

from datetime import timedelta
from typing import cast

from penstock.model import ChannelNumbers, HistoryEntry, HistoryKept, QueueNumbers, Settings
from penstock.plan import Plan, Row

from .base import Base
from .names import data, text
from .repeating import repeatable
from .times import length, moment, moment_or_none


class Reading(Base):
    @repeatable
    def queue_numbers(self) -> Plan[list[QueueNumbers]]:
        rows = yield self._say("queue_numbers")
        return [_queue_numbers(row) for row in rows]

    @repeatable
    def channel_numbers(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelNumbers]]:
        rows = yield self._say("channel_numbers", data(queue), data(channel), limit)
        return [numbers_of(row) for row in rows]

    @repeatable
    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._say("history", message_id)
        return [entry_of(row) for row in rows]

    @repeatable
    def settings(self) -> Plan[Settings]:
        return (yield from self._settings())

    @repeatable
    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_first: timedelta | None,
        backoff_most: timedelta | None,
    ) -> Plan[Settings]:
        first, most = (None if x is None else length(x) for x in (backoff_first, backoff_most))
        yield self._say("configure", data(history), history_days, first, most)
        return (yield from self._settings())

    def _settings(self) -> Plan[Settings]:
        ((history, days, first, most),) = yield self._say("settings")
        backoff = (timedelta(microseconds=first), timedelta(microseconds=most))
        return Settings(cast(HistoryKept, text(history)), days, *backoff)


def _queue_numbers(row: Row) -> QueueNumbers:
    waiting, scheduled, leased, dead, channels = map(int, row[1:6])
    name, oldest = text(row[0]) or "", moment_or_none(row[6])
    return QueueNumbers(name, waiting, scheduled, leased, dead, channels, oldest)


def numbers_of(row: Row) -> ChannelNumbers:
    waiting, scheduled, leased, dead = map(int, row[2:6])
    queue, channel, oldest = text(row[0]) or "", text(row[1]) or "", moment_or_none(row[6])
    return ChannelNumbers(queue, channel, waiting, scheduled, leased, dead, oldest)


def entry_of(row: Row) -> HistoryEntry:
    """From the columns of history.sql."""
    id, message_id, queue, channel, kind, priority, attempt, fence, worker, *rest = row
    outcome, reason, error_type, error, first, published, due, claimed, ended, *last = rest
    size, terminal, dead = last
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
        moment_or_none(first),
        moment_or_none(published),
        moment_or_none(due),
        moment_or_none(claimed),
        moment(ended),
        size,
        bool(terminal),
        bool(dead),
    )
