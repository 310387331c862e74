"""What operators look at: messages in any state, the history, totals, and the settings."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast

from laneway.engines.times import micros, moment
from laneway.inspection import (
    HistoryPage,
    MessageFilter,
    MessageInfo,
    MessagePage,
    Totals,
    read_position,
)
from laneway.model import HistoryEntry, HistoryKept, Settings
from laneway.plan import Plan, Row

from .base import MysqlSql, data, pair_id, repeatable, text
from .operate.looks import ROWS
from .upkeep import MysqlHistoryOrder


class MysqlStats:
    """The history of a message, and the settings."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def history(self, message_id: int) -> Plan[list[HistoryEntry]]:
        rows = yield self._sql.statement("history", message_id)
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
        yield self._sql.statement(
            "configure", data(history), history_days, initial, maximum, audit_days
        )
        if history is not None and history != "all":
            yield self._sql.statement("forget_kind_counts")
        return (yield from self._settings())

    def _settings(self) -> Plan[Settings]:
        ((history, days, initial, maximum, audit_days),) = yield self._sql.statement("settings")
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


class MysqlInspect:
    """What operators look at: messages in any state, the history, totals."""

    def __init__(self, sql: MysqlSql, history_order: MysqlHistoryOrder) -> None:
        self._sql = sql
        self._history_order = history_order

    @repeatable
    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._sql.statement("message", message_id, self._sql.now())
        return message_info(rows[0]) if rows else None

    @repeatable
    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._sql.statement("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    @repeatable
    def saved_state(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._sql.statement("saved_state", message_id)
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    @repeatable
    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        """Stamps what is committed first, so that readers need not wait for upkeep."""
        stamp = yield from self._history_order.stamp_history()
        if position is None:
            return HistoryPage([], f"{stamp + 1}.0")
        rows = yield self._sql.statement("history_since", *read_position(position, 2), limit)
        if not rows:
            return HistoryPage([], position)
        return HistoryPage([entry_of(row[1:]) for row in rows], f"{rows[-1][0]}.{rows[-1][1]}")

    @repeatable
    def totals(self) -> Plan[Totals]:
        tables = [f"{self._sql.schema}_{name}".encode() for name in ("message", "history")]
        rows = yield self._sql.statement("totals", tables)
        counts = {text(name): int(count or 0) for name, count in rows}
        return Totals(*(counts[text(name)] for name in tables))

    @repeatable
    def clock(self) -> Plan[datetime]:
        rows = yield self._sql.statement("clock", self._sql.now())
        return moment(rows[0][0])


def message_info(row: Row) -> MessageInfo:
    """From a row of the statement message."""
    id, queue, channel, kind, key, state, priority, due, published, first, expires, *rest = row
    attempt, most, content_type, headers, size, fence, worker, claimed, until, *dead = rest
    died_at, reason, error_type, error, *trace = dead
    return MessageInfo(
        id,
        text(queue) or "",
        text(channel) or "",
        text(kind) or "",
        text(key),
        text(state),  # type: ignore[arg-type]
        priority,
        moment(due),
        moment(published),
        moment(first),
        moment(expires),
        attempt,
        most,
        text(content_type) or "",
        json.loads(headers) if headers else {},
        size,
        fence,
        text(worker),
        moment(claimed),
        moment(until),
        moment(died_at),
        text(reason),
        text(error_type),
        text(error),
        text(trace[0]) if trace else None,
    )


_WALK = 5_000
"""Rows that a page looks at. They are read in the order of their primary key; of leases, which are
joined with their messages, fewer."""


class MysqlMessageList:
    """Pages of messages. Each state is listed from the smallest table that has it, so many rows a
    page: a filter that matches little makes a short page, not a long search."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[MessagePage]:
        if wanted.state == "dead":
            return (
                yield from self._walk("messages_dead", "messages_dead_end", wanted, limit, after)
            )
        if wanted.state == "leased":
            return (
                yield from self._walk(
                    "messages_leased", "messages_leased_end", wanted, limit, after
                )
            )
        if wanted.queue is not None and wanted.channel is not None:
            id = pair_id(wanted.queue.encode(), wanted.channel.encode())
            ((size,),) = yield self._sql.statement("size_of_channel", id, ROWS)
            if int(size) < ROWS:
                options = (after, limit, data(wanted.state), self._sql.now())
                rows = yield self._sql.statement(
                    "messages_of_channel", id, data(wanted.kind), *options
                )
                return _page(rows, limit, None, int(size))
        return (yield from self._walk("messages", "messages_end", wanted, limit, after))

    def _walk(
        self, statement: str, ends: str, wanted: MessageFilter, limit: int, after: int
    ) -> Plan[MessagePage]:
        """Those among the next so many rows of a table; ``ends`` finds the last of these."""
        look = ROWS if wanted.state == "leased" else _WALK
        ((end, looked),) = yield self._sql.statement(ends, after, look)
        if end is None:
            return MessagePage()
        names = data(wanted.queue), data(wanted.channel), data(wanted.kind)
        options = (data(wanted.state), self._sql.now()) if statement == "messages" else ()
        rows = yield self._sql.statement(statement, *names, after, limit, *options, int(end))
        more = int(end) if int(looked) >= look else None
        return _page(rows, limit, more, int(looked))


def _page(rows: Sequence[Row], limit: int, more: int | None, looked: int) -> MessagePage:
    found = [message_info(row) for row in rows]
    return MessagePage(found, found[-1].id if len(found) == limit else more, looked)
