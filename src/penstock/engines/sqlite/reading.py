"""Numbers, history and settings."""

from datetime import timedelta
from typing import Any

from penstock.model import ChannelNumbers, HistoryEntry, HistoryKept, QueueNumbers, Settings
from penstock.plan import Plan, Row

from .base import Base
from .times import micros, moment

_ALL = -1  # what LIMIT calls no limit
_TIMES, _FLAGS = slice(13, 18), slice(19, 21)  # of a history entry


class Reading(Base):
    def queue_numbers(self) -> Plan[list[QueueNumbers]]:
        """The channels' numbers, added up."""
        sums: dict[str, QueueNumbers] = {}
        for n in (yield from self.channel_numbers(None, None, _ALL)):
            sums[n.queue] = _plus(sums.get(n.queue, QueueNumbers(n.queue)), n)
        return [sums[queue] for queue in sorted(sums)]

    def channel_numbers(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelNumbers]]:
        rows = yield self._look("channel_numbers", queue, channel, limit, self._now())
        return [_numbers(*row) for row in rows]

    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._look("history", message_id)
        return [read_entry(row) for row in rows]

    def settings(self) -> Plan[Settings]:
        rows = yield self._look("settings")
        return _settings(rows[0])

    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_first: timedelta | None,
        backoff_most: timedelta | None,
    ) -> Plan[Settings]:
        lengths = micros(backoff_first), micros(backoff_most)
        rows = yield self._say("configure", history, history_days, *lengths)
        return _settings(rows[0])


def read_entry(row: Row) -> HistoryEntry:
    values: list[Any] = list(row)
    values[_TIMES] = map(moment, values[_TIMES])
    values[_FLAGS] = map(bool, values[_FLAGS])
    return HistoryEntry(*values)


def _numbers(*row: Any) -> ChannelNumbers:
    values = list(row)
    values[-1] = moment(values[-1])
    return ChannelNumbers(*values)


def _settings(row: Row) -> Settings:
    history, days, first, most = row
    return Settings(history, days, timedelta(microseconds=first), timedelta(microseconds=most))


def _plus(sum: QueueNumbers, n: ChannelNumbers) -> QueueNumbers:
    dues = [due for due in (sum.oldest_due, n.oldest_due) if due is not None]
    return QueueNumbers(
        sum.queue,
        sum.waiting + n.waiting,
        sum.scheduled + n.scheduled,
        sum.leased + n.leased,
        sum.dead + n.dead,
        sum.channels + 1,
        min(dues, default=None),
    )
