"""Events: mailboxes that the verbs write to and their readers empty; and how messages ended."""

from collections.abc import Sequence
from datetime import timedelta

from penstock.event import Ending, Event, EventFilter, Heard
from penstock.plan import Plan, Row

from .base import Base


class Events(Base):
    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        filters = [None if names is None else list(names) for names in wanted]
        rows = yield self._say_now("listen", *filters, length)
        return int(rows[0][0])

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        rows = yield self._say_now("hear", listener, limit, renewed)
        alive, behind = rows[0][:2]
        events = [event for row in rows if row[3] is not None for event in _events(row)]
        return Heard(events, alive, behind or 0)

    def unlisten(self, listener: int) -> Plan[None]:
        yield self._say_now("unlisten", listener)

    def endings(self, ids: Sequence[int]) -> Plan[list[Ending | None]]:
        rows = yield self._say("endings", list(ids))
        return [None if row[1] is None else Ending(*row) for row in rows]


def _events(row: Row) -> list[Event]:
    _, _, at, what, ids, queues, channels, kinds = row
    return [
        Event(what, id, queue, channel, kind, at)
        for id, queue, channel, kind in zip(ids, queues, channels, kinds, strict=True)
    ]
