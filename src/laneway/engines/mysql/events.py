"""Events: listeners, and the mailboxes that they empty. And how messages ended.

Every verb that moves messages adds a row to the mailbox of each listener concerned.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from laneway.engines.times import micros, moment
from laneway.event import Event, EventFilter, Heard, MessageEnd
from laneway.plan import Plan, Row

from .base import MysqlSql, repeatable, text

_MAX_EVENTS = 250  # in one row, which must fit into a statement

EventRow = tuple[int, str, str, str]
"""Message id, queue, channel, kind."""


class MysqlEventOutbox:
    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def add_message_events(self, what: str, ids: Sequence[int]) -> Plan[None]:
        """For messages that are waiting or leased."""
        if ids and (
            listeners := (
                yield self._sql.statement("event_listeners", self._sql.now(), what.encode())
            )
        ):
            rows = yield self._sql.statement("event_messages", list(ids))
            yield from self._add_mail(what, [event_row(*row) for row in rows], listeners)

    def add_events(self, what: str, events: Sequence[EventRow]) -> Plan[None]:
        """For dead letters, which have no message row."""
        if events and (
            listeners := (
                yield self._sql.statement("event_listeners", self._sql.now(), what.encode())
            )
        ):
            yield from self._add_mail(what, events, listeners)

    def _add_mail(
        self, what: str, events: Sequence[EventRow], listeners: Sequence[Row]
    ) -> Plan[None]:
        mail = []
        for id, now, *filters in listeners:
            queues, channels, kinds = (None if f is None else set(json.loads(f)) for f in filters)
            wanted = [
                event
                for event in events
                if (queues is None or event[1] in queues)
                and (channels is None or event[2] in channels)
                and (kinds is None or event[3] in kinds)
            ]
            mail += [(id, now, what.encode(), part) for part in _json_parts(wanted)]
        yield from self._sql.insert("add_events", mail)


class MysqlEvents:
    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def endings(self, ids: Sequence[int]) -> Plan[list[MessageEnd | None]]:
        rows = yield self._sql.statement("endings", sorted(set(ids)))
        found = {int(row[0]): _ending(row) for row in rows}
        return [found[id] for id in ids]

    @repeatable
    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        filters = [None if names is None else json.dumps(list(names)) for names in wanted]
        yield from self._sql.server_life()
        yield self._sql.statement("listen", self._sql.now(), micros(length), *filters)
        rows = yield self._sql.statement("last_insert_id")
        return int(rows[0][0])

    @repeatable
    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        """Only the listener deletes its mail, so it deletes exactly what it has read."""
        rows = yield self._sql.statement("listener_status", self._sql.now(), listener)
        alive, behind, now = rows[0] if rows else (False, 0, 0)
        mail = yield self._sql.statement("hear", listener, limit)
        if mail:
            yield self._sql.statement("delete_mail", [int(row[0]) for row in mail])
        if alive and renewed is not None:
            yield self._sql.statement("extend_listener", int(now) + micros(renewed), listener)
        return Heard(list(_events(mail)), bool(alive), int(behind))

    @repeatable
    def unlisten(self, listener: int) -> Plan[None]:
        """Upkeep deletes the mail."""
        yield self._sql.statement("unlisten", self._sql.now(), listener)


def _events(mail: Sequence[Row]) -> Iterable[Event]:
    for _, at, what, events in mail:
        for id, queue, channel, kind in json.loads(events):
            yield Event(text(what), id, queue, channel, kind, moment(at))  # type: ignore[arg-type]


def _ending(row: Row) -> MessageEnd | None:
    id, outcome, ended_at, *why, kept_until = row
    if outcome is None:
        return None
    reason, error_type, error = map(text, why)
    rest = (moment(ended_at), reason, error_type, error, moment(kept_until))
    return MessageEnd(int(id), text(outcome), *rest)  # type: ignore[arg-type]


def _json_parts(events: Sequence[EventRow]) -> Iterator[bytes]:
    for start in range(0, len(events), _MAX_EVENTS):
        yield json.dumps(events[start : start + _MAX_EVENTS], ensure_ascii=False).encode()


def event_row(id: int, queue: bytes, channel: bytes, kind: bytes) -> EventRow:
    return int(id), text(queue) or "", text(channel) or "", text(kind) or ""
