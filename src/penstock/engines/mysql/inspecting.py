"""What operators look at: messages wherever they are, channels, what ended, totals."""

import json
from datetime import datetime

from penstock.insight import (
    ChannelInfo,
    HistoryPage,
    MessageFilter,
    MessageInfo,
    Totals,
    read_position,
)
from penstock.plan import Plan, Row

from .channels import policy_of
from .names import data, text
from .reading import entry_of, numbers_of
from .repeating import repeatable
from .stamping import Stamping
from .times import moment, moment_or_none

_NUMBERS = 7  # columns of ChannelNumbers, before those of the policy


class Inspecting(Stamping):
    @repeatable
    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[list[MessageInfo]]:
        """Each list of states starts from the smallest table that knows it."""
        names = (data(wanted.queue), data(wanted.channel), data(wanted.kind))
        if wanted.state == "dead":
            rows = yield self._say("messages_dead", *names, after, limit)
        elif wanted.state == "leased":
            rows = yield self._say("messages_leased", *names, after, limit)
        else:
            state = data(wanted.state)
            rows = yield self._say("messages", *names, after, limit, state, self._now())
        return [_info(row) for row in rows]

    @repeatable
    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._say("message", message_id, self._now())
        return _info(rows[0]) if rows else None

    @repeatable
    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._say("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    @repeatable
    def channels(
        self, queue: str | None, paused: bool | None, limit: int
    ) -> Plan[list[ChannelInfo]]:
        rows = yield self._say("channels", data(queue), paused, limit)
        return [_channel(row) for row in rows]

    @repeatable
    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        """What is committed is stamped first, so that a reader need not wait for upkeep."""
        stamp = yield from self._stamp()
        if position is None:
            return HistoryPage([], f"{stamp + 1}.0")
        rows = yield self._say("history_since", *read_position(position, 2), limit)
        if not rows:
            return HistoryPage([], position)
        return HistoryPage([entry_of(row[1:]) for row in rows], f"{rows[-1][0]}.{rows[-1][1]}")

    @repeatable
    def totals(self) -> Plan[Totals]:
        tables = [f"{self.schema}_{name}".encode() for name in ("message", "history")]
        rows = yield self._say("totals", tables)
        counts = {text(name): int(count or 0) for name, count in rows}
        return Totals(*(counts[text(name)] for name in tables))

    @repeatable
    def clock(self) -> Plan[datetime]:
        rows = yield self._say("clock", self._now())
        return moment(rows[0][0])


def _info(row: Row) -> MessageInfo:
    id, queue, channel, kind, key, state, priority, due, published, first, expires, *rest = row
    attempt, most, content_type, headers, size, fence, worker, claimed, until, *dead = rest
    died_at, reason, error_type, error = dead
    return MessageInfo(
        id,
        text(queue) or "",
        text(channel) or "",
        text(kind) or "",
        text(key),
        text(state),  # type: ignore[arg-type]
        priority,
        moment_or_none(due),
        moment(published),
        moment(first),
        moment_or_none(expires),
        attempt,
        most,
        text(content_type) or "",
        json.loads(headers) if headers else {},
        size,
        fence,
        text(worker),
        moment_or_none(claimed),
        moment_or_none(until),
        moment_or_none(died_at),
        text(reason),
        text(error_type),
        text(error),
    )


def _channel(row: Row) -> ChannelInfo:
    numbers = numbers_of(row[:_NUMBERS])
    return ChannelInfo(numbers.queue, numbers.channel, numbers, policy_of(*row[_NUMBERS:]))
