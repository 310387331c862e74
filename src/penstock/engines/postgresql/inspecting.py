"""What operators look at: messages wherever they are, channels, what ended, totals."""

import json
from datetime import datetime
from typing import Any

from penstock.insight import (
    ChannelInfo,
    HistoryPage,
    MessageFilter,
    MessageInfo,
    Totals,
    read_position,
)
from penstock.model import ChannelNumbers, HistoryEntry, Policy
from penstock.plan import Plan, Row

from .base import Base

_HEADERS = 14
_NUMBERS = 7  # columns of ChannelNumbers, before those of the policy


class Inspecting(Base):
    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[list[MessageInfo]]:
        by = (wanted.queue, wanted.channel, wanted.kind, wanted.state)
        rows = yield self._say_now("messages", *by, after, limit)
        return [_info(row) for row in rows]

    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._say_now("message", message_id)
        return _info(rows[0]) if rows else None

    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._say("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    def channels(
        self, queue: str | None, paused: bool | None, limit: int
    ) -> Plan[list[ChannelInfo]]:
        rows = yield self._say("channels", queue, paused, limit)
        return [_channel(row) for row in rows]

    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        if position is None:
            rows = yield self._say("history_end")
            return HistoryPage([], f"{rows[0][0]}.0")
        rows = yield self._say("history_since", *read_position(position, 2), limit)
        if not rows:
            return HistoryPage([], position)
        return HistoryPage([HistoryEntry(*row[1:]) for row in rows], f"{rows[-1][0]}.{rows[-1][1]}")

    def totals(self) -> Plan[Totals]:
        rows = yield self._say("totals")
        return Totals(*rows[0])

    def clock(self) -> Plan[datetime]:
        rows = yield self._say_now("clock")
        return rows[0][0]  # type: ignore[no-any-return]


def _info(row: Row) -> MessageInfo:
    values: list[Any] = list(row)
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return MessageInfo(*values)


def _channel(row: Row) -> ChannelInfo:
    numbers = ChannelNumbers(*row[:_NUMBERS])
    return ChannelInfo(numbers.queue, numbers.channel, numbers, Policy(*row[_NUMBERS:]))
