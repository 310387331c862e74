"""What operators inspect: messages in any state, history, totals, settings."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from laneway.engines.times import micros, moment
from laneway.inspection import (
    LOOK,
    HistoryPage,
    MessageFilter,
    MessageInfo,
    MessagePage,
    MessageState,
    Totals,
    read_position,
)
from laneway.model import HistoryEntry, HistoryKept, Settings
from laneway.plan import Plan, Row

from .base import SqliteSql, listed
from .operate.looks import CHANNELS, SqliteLooks

_ENTRY_TIMES, _FLAGS, _STARTED = slice(13, 18), slice(19, 21), 21  # of a history entry


class SqliteStats:
    """History and settings."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._sql.read_outside("history", message_id)
        return [read_entry(row) for row in rows]

    def settings(self) -> Plan[Settings]:
        rows = yield self._sql.read_outside("settings")
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
        rows = yield self._sql.statement("configure", history, history_days, *lengths, audit_days)
        if history is not None:
            gap = "close_gap" if history == "all" else "open_gap"
            yield self._sql.statement(gap, self._sql.now())
            if history != "all":
                yield self._sql.statement("forget_kind_counts")
        return _settings(rows[0])


def read_entry(row: Row) -> HistoryEntry:
    values: list[Any] = list(row)
    values[_ENTRY_TIMES] = map(moment, values[_ENTRY_TIMES])
    values[_FLAGS] = map(bool, values[_FLAGS])
    values[_STARTED] = moment(values[_STARTED])
    return HistoryEntry(*values)


def _settings(row: Row) -> Settings:
    history, days, first, most, audit_days = row
    backoff = (timedelta(microseconds=first), timedelta(microseconds=most))
    return Settings(history, days, *backoff, audit_days)


_MESSAGE_TIMES = (7, 8, 9, 10, 18, 19, 20)
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


class SqliteMessageList:
    """Lists of messages, by state and filter, which read a limited number of rows."""

    def __init__(self, sql: SqliteSql, looks: SqliteLooks) -> None:
        self._sql = sql
        self._looks = looks

    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[MessagePage]:
        """Reads the ids of LOOK messages at most, then what is wanted of them. If a queue or
        channel is named that has few messages, only these are looked at."""
        page, next_ids = _LISTS.get(wanted.state or "", _LISTS[""])
        ids = yield from self._few(wanted, after)
        looked, last = len(ids or ()), None
        if ids is None:
            most = limit if wanted == MessageFilter(state=_ONLY.get(page)) else LOOK
            rows = yield self._sql.read_outside(next_ids, after, most, wanted.kind)
            ids = [id for id, fits in rows if fits]
            looked, last = len(rows), rows[-1][0] if len(rows) == most else None
        rows = yield self._sql.read_outside(
            page,
            listed(ids),
            limit,
            wanted.queue,
            wanted.channel,
            wanted.kind,
            *([wanted.state, self._sql.now()] if page == "messages" else []),
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
            rows = yield self._sql.read_outside("dead_of_queue", wanted.queue, LOOK + 1)
        else:
            channels = yield from self._channels_of(wanted)
            if channels is None:
                return None
            rows = yield self._sql.read_outside("count_messages", listed(channels))
            if rows[0][0] > LOOK:
                return None
            rows = yield self._sql.read_outside("messages_of_channels", listed(channels))
        return sorted(row[0] for row in rows if row[0] > after) if len(rows) <= LOOK else None

    def _channels_of(self, wanted: MessageFilter) -> Plan[list[int] | None]:
        """Channels of the queue that is named, or with this name; None if they are too many."""
        if wanted.queue is None and wanted.channel is None:
            return None
        queues = (
            [wanted.queue] if wanted.queue is not None else (yield from self._looks.queue_names())
        )
        if wanted.channel is not None:
            rows = yield self._sql.read_outside("channel_ids", listed(queues), wanted.channel)
            return [row[0] for row in rows]
        leased = yield from self._looks.leased_channels()
        ids, all = yield from self._looks.busy_ids(queues[0], leased, CHANNELS)
        return ids if all else None

    def _with_leases(self, rows: Sequence[Row]) -> Plan[list[Row]]:
        """Adds fence, worker, claimed_at and until to messages that are leased."""
        ids = [row[0] for row in rows if row[_STATE] == "leased"]
        if not ids:
            return list(rows)
        leases = yield self._sql.read_outside("leases_of_messages", listed(ids))
        known = {lease[0]: lease[1:] for lease in leases}
        return [(*row[: _LEASE.start], *known.get(row[0], row[_LEASE])) for row in rows]


def read_message(row: Row) -> MessageInfo:
    values: list[Any] = list(row)
    for column in _MESSAGE_TIMES[: 7 if len(values) > _MESSAGE_TIMES[-1] else 6]:
        values[column] = moment(values[column])
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return MessageInfo(*values)


class SqliteInspect:
    """What operators inspect: a message in any state, history, totals."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._sql.read_outside("message", message_id, self._sql.now())
        return read_message(rows[0]) if rows else None

    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._sql.read_outside("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    def saved_state(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._sql.read_outside("saved_state", message_id)
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        """Ids rise in commit order, so the last one is the position."""
        if position is None:
            totals = yield from self.totals()
            return HistoryPage([], str(totals.ended))
        rows = yield self._sql.read_outside("history_since", *read_position(position, 1), limit)
        last = str(rows[-1][0]) if rows else position
        return HistoryPage([read_entry(row) for row in rows], last)

    def totals(self) -> Plan[Totals]:
        rows = yield self._sql.read_outside("totals", f"{self._sql.schema}_history")
        return Totals(*rows[0])

    def clock(self) -> Plan[datetime]:
        """The machine's clock. (A plan must have a statement; this one is cheap.)"""
        yield self._sql.read_outside("settings")
        return moment(self._sql.now())
