"""Numbers, history and settings."""

from datetime import timedelta

from penstock.model import ChannelNumbers, HistoryEntry, HistoryKept, QueueNumbers, Settings
from penstock.plan import Plan

from .base import Base


class Reading(Base):
    def queue_numbers(self) -> Plan[list[QueueNumbers]]:
        rows = yield self._say("queue_numbers")
        return [QueueNumbers(*row) for row in rows]

    def channel_numbers(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelNumbers]]:
        rows = yield self._say("channel_numbers", queue, channel, limit)
        return [ChannelNumbers(*row) for row in rows]

    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._say("history", message_id)
        return [HistoryEntry(*row) for row in rows]

    def settings(self) -> Plan[Settings]:
        rows = yield self._say("settings")
        return Settings(*rows[0])

    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_first: timedelta | None,
        backoff_most: timedelta | None,
    ) -> Plan[Settings]:
        rows = yield self._say("configure", history, history_days, backoff_first, backoff_most)
        return Settings(*rows[0])
