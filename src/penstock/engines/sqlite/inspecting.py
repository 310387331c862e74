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
from penstock.model import ChannelNumbers, Policy
from penstock.plan import Plan, Row

from .channels import read_policy
from .reading import Reading, read_entry
from .times import moment

_TIMES = (7, 8, 9, 10, 18, 19, 20)
_HEADERS = 14
_ALL = -1  # what LIMIT calls no limit


class Inspecting(Reading):
    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[list[MessageInfo]]:
        """Each list of states starts from the smallest table that knows it."""
        names = (wanted.queue, wanted.channel, wanted.kind)
        if wanted.state == "dead":
            rows = yield self._look("messages_dead", *names, after, limit)
        elif wanted.state == "leased":
            rows = yield self._look("messages_leased", *names, after, limit)
        else:
            rows = yield self._look("messages", *names, after, limit, wanted.state, self._now())
        return [_info(row) for row in rows]

    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._look("message", message_id, self._now())
        return _info(rows[0]) if rows else None

    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._look("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    def channels(
        self, queue: str | None, paused: bool | None, limit: int
    ) -> Plan[list[ChannelInfo]]:
        numbers = yield from self.channel_numbers(queue, None, _ALL)
        known = {(n.queue, n.channel): n for n in numbers}
        rows = yield self._look("policies", queue)
        policies = {(row[0], row[1]): read_policy(row[2:]) for row in rows}
        found = [_channel(name, known, policies) for name in known | policies]
        if paused is not None:
            found = [info for info in found if info.policy.paused == paused]
        return sorted(found, key=_fullest)[:limit]

    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        """Ids rise in the order of commits, so the last one is the position."""
        if position is None:
            totals = yield from self.totals()
            return HistoryPage([], str(totals.ended))
        rows = yield self._look("history_since", *read_position(position, 1), limit)
        last = str(rows[-1][0]) if rows else position
        return HistoryPage([read_entry(row) for row in rows], last)

    def totals(self) -> Plan[Totals]:
        rows = yield self._look("totals", f"{self.schema}_history")
        return Totals(*rows[0])

    def clock(self) -> Plan[datetime]:
        """The machine's, on which all clients of the file are. The look is for the plan's sake."""
        yield self._look("settings")
        return moment(self._now())


def _info(row: Row) -> MessageInfo:
    values: list[Any] = list(row)
    for place in _TIMES[: 7 if len(values) > _TIMES[-1] else 6]:
        values[place] = moment(values[place])
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return MessageInfo(*values)


def _channel(
    name: tuple[str, str],
    numbers: dict[tuple[str, str], ChannelNumbers],
    policies: dict[tuple[str, str], Policy],
) -> ChannelInfo:
    return ChannelInfo(
        *name, numbers.get(name, ChannelNumbers(*name)), policies.get(name, Policy())
    )


def _fullest(info: ChannelInfo) -> tuple[int, str, str]:
    return -info.numbers.waiting, info.queue, info.channel
