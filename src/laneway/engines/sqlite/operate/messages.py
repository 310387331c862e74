"""Lists of messages, by state and filter, which read a limited number of rows."""

import json
from collections.abc import Sequence
from typing import Any

from laneway.engines.sqlite.base import listed
from laneway.engines.times import moment
from laneway.inspection import LOOK, MessageFilter, MessageInfo, MessagePage, MessageState
from laneway.plan import Plan, Row

from .looks import CHANNELS, SqliteLooks

_TIMES = (7, 8, 9, 10, 18, 19, 20)
_HEADERS = 14
_STATE = 5
_LEASE = slice(16, 20)

_LISTS = {
    "": ("messages", "message_ids"),
    "leased": ("messages_leased", "leased_ids"),
    "dead": ("messages_dead", "dead_ids"),
}
"""By state: the statement of a page, and the one that finds the next ids."""
_ONLY: dict[str, MessageState | None] = {"messages_leased": "leased", "messages_dead": "dead"}


class SqliteMessages(SqliteLooks):
    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[MessagePage]:
        """Reads the ids of LOOK messages at most, then what is wanted of them. If a queue or
        channel is named that has few messages, only these are looked at."""
        page, next_ids = _LISTS.get(wanted.state or "", _LISTS[""])
        ids = yield from self._few(wanted, after)
        looked, last = len(ids or ()), None
        if ids is None:
            most = limit if wanted == MessageFilter(state=_ONLY.get(page)) else LOOK
            rows = yield self._read_outside(next_ids, after, most, wanted.kind)
            ids = [id for id, fits in rows if fits]
            looked, last = len(rows), rows[-1][0] if len(rows) == most else None
        rows = yield self._read_outside(
            page,
            listed(ids),
            limit,
            wanted.queue,
            wanted.channel,
            wanted.kind,
            *([wanted.state, self._now()] if page == "messages" else []),
        )
        if page == "messages":
            rows = yield from self._with_leases(rows)
        found = [read_message(row) for row in rows]
        return MessagePage(found, found[-1].id if len(found) == limit else last, looked)

    def _few(self, wanted: MessageFilter, after: int) -> Plan[list[int] | None]:
        """The ids of all messages of the queue or channel that is named, if it has few of them."""
        if wanted.state == "dead":
            if wanted.queue is None:
                return None
            rows = yield self._read_outside("dead_of_queue", wanted.queue, LOOK + 1)
        else:
            channels = yield from self._channels_of(wanted)
            if channels is None:
                return None
            rows = yield self._read_outside("count_messages", listed(channels))
            if rows[0][0] > LOOK:
                return None
            rows = yield self._read_outside("messages_of_channels", listed(channels))
        return sorted(row[0] for row in rows if row[0] > after) if len(rows) <= LOOK else None

    def _channels_of(self, wanted: MessageFilter) -> Plan[list[int] | None]:
        """Channels of the queue that is named, or with this name; None if they are too many."""
        if wanted.queue is None and wanted.channel is None:
            return None
        queues = [wanted.queue] if wanted.queue is not None else (yield from self._queue_names())
        if wanted.channel is not None:
            rows = yield self._read_outside("channel_ids", listed(queues), wanted.channel)
            return [row[0] for row in rows]
        leased = yield from self._leased_channels()
        ids, all = yield from self._busy_ids(queues[0], leased, CHANNELS)
        return ids if all else None

    def _with_leases(self, rows: Sequence[Row]) -> Plan[list[Row]]:
        """Adds fence, worker, claimed_at and until to messages that are leased."""
        ids = [row[0] for row in rows if row[_STATE] == "leased"]
        if not ids:
            return list(rows)
        leases = yield self._read_outside("leases_of_messages", listed(ids))
        known = {lease[0]: lease[1:] for lease in leases}
        return [(*row[: _LEASE.start], *known.get(row[0], row[_LEASE])) for row in rows]


def read_message(row: Row) -> MessageInfo:
    values: list[Any] = list(row)
    for column in _TIMES[: 7 if len(values) > _TIMES[-1] else 6]:
        values[column] = moment(values[column])
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return MessageInfo(*values)
