"""Events: listeners, the mail that the verbs write for them, and how messages ended.

Every verb that changes messages writes mail if there are listeners, which begin_write tells it.

notify_channel and sleep: the notifier polls the file by itself, so nobody has to notify it.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from laneway.engines.times import micros, moment
from laneway.event import Event, EventFilter, Heard, MessageEnd, Outcome, StoredResult
from laneway.plan import Plan, Row

from .base import SqliteSql, WriteState, listed


class SqliteEventOutbox:
    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def add_events(self, what: str, ids: Sequence[int | None], state: WriteState) -> Plan[None]:
        """For messages that are waiting or leased."""
        if state.has_listeners and ids:
            yield self._sql.statement("add_events", what, listed(ids), state.now)

    def add_dead_letter_events(
        self, what: str, ids: Sequence[int], state: WriteState
    ) -> Plan[None]:
        """For dead letters."""
        if state.has_listeners and ids:
            yield self._sql.statement("add_dead_letter_events", what, listed(ids), state.now)

    def add_history_events(self, entries: Sequence[Sequence[Any]], state: WriteState) -> Plan[None]:
        """For rows of the history: the event is named after the outcome."""
        if state.has_listeners:
            for what, some in groupby(entries, lambda entry: entry[2]):
                yield from self.add_events(what, [entry[0] for entry in some], state)


class SqliteEvents:
    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def endings(self, ids: Sequence[int]) -> Plan[list[MessageEnd | None]]:
        rows = yield self._sql.read_outside("endings", listed(ids))
        return [None if row[1] is None else _ending(*row) for row in rows]

    def results(self, ids: Sequence[int]) -> Plan[list[StoredResult | None]]:
        rows = yield self._sql.read_outside("results", listed(ids), self._sql.now())
        found = {id: StoredResult(kind, bytes(value)) for id, kind, value in rows}
        return [found.get(id) for id in ids]

    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        state = yield from self._sql.begin_write()
        filters = [None if names is None else listed(names) for names in wanted]
        rows = yield self._sql.statement("listen", *filters, state.now + micros(length))
        return int(rows[0][0])

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        """Writes nothing if there is no mail and nothing to renew."""
        rows = yield self._sql.read_outside("listener_status", listener, self._sql.now())
        ((alive, behind, has_mail),) = rows
        if not has_mail and renewed is None:
            return Heard([], bool(alive), behind or 0)
        state = yield from self._sql.begin_write()
        rows = yield self._sql.statement("listener_status", listener, state.now)
        ((alive, behind, _),) = rows
        mail = yield self._sql.statement("hear", listener, limit)
        if mail:
            yield self._sql.statement("delete_heard_mail", listener, mail[-1][0])
        if alive and renewed is not None:
            yield self._sql.statement("extend_listener", listener, state.now + micros(renewed))
        return Heard(list(_events(mail)), bool(alive), behind or 0)

    def unlisten(self, listener: int) -> Plan[None]:
        """Upkeep deletes the mail."""
        state = yield from self._sql.begin_write()
        yield self._sql.statement("unlisten", listener, state.now)


def _ending(
    id: int,
    outcome: Outcome,
    ended_at: int | None,
    reason: str | None,
    error_type: str | None,
    error: str | None,
    kept_until: int | None,
) -> MessageEnd:
    why = (reason, error_type, error)
    return MessageEnd(id, outcome, moment(ended_at), *why, moment(kept_until))


def _events(mail: Sequence[Row]) -> Iterable[Event]:
    for _, at, what, events in mail:
        for id, queue, channel, kind in json.loads(events):
            yield Event(what, id, queue, channel, kind, moment(at))
