"""Events: mailboxes that the verbs write to and listeners read; and how messages ended.

Notifications: which channel an idle worker listens to, and that it wants to be notified.
"""

from collections.abc import Sequence
from datetime import timedelta

from laneway.event import Event, EventFilter, Heard, MessageEnd, StoredResult
from laneway.plan import Plan, Row

from .base import PostgresqlSql


class PostgresqlEvents:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        filters = [None if names is None else list(names) for names in wanted]
        rows = yield self._sql.statement_now("listen", *filters, length)
        return int(rows[0][0])

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        rows = yield self._sql.statement_now("hear", listener, limit, renewed)
        alive, behind = rows[0][:2]
        events = [event for row in rows if row[3] is not None for event in _events(row)]
        return Heard(events, alive, behind or 0)

    def unlisten(self, listener: int) -> Plan[None]:
        yield self._sql.statement_now("unlisten", listener)

    def endings(self, ids: Sequence[int]) -> Plan[list[MessageEnd | None]]:
        rows = yield self._sql.statement("endings", list(ids))
        return [None if row[1] is None else MessageEnd(*row) for row in rows]

    def results(self, ids: Sequence[int]) -> Plan[list[StoredResult | None]]:
        rows = yield self._sql.statement_now("results", list(ids))
        found = {id: StoredResult(kind, bytes(value)) for id, kind, value in rows}
        return [found.get(id) for id in ids]


def _events(row: Row) -> list[Event]:
    _, _, at, what, ids, queues, channels, kinds = row
    return [
        Event(what, id, queue, channel, kind, at)
        for id, queue, channel, kind in zip(ids, queues, channels, kinds, strict=True)
    ]
