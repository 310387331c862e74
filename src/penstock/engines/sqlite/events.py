"""Events: mailboxes that the verbs write to and their readers empty; and how messages ended."""

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta

from penstock.event import Ending, Event, EventFilter, Heard
from penstock.plan import Plan, Row

from .base import Base, listed
from .times import micros, moment


class Events(Base):
    def endings(self, ids: Sequence[int]) -> Plan[list[Ending | None]]:
        rows = yield self._look("endings", listed(ids))
        return [
            None if outcome is None else Ending(id, outcome, moment(ended_at), *rest)
            for id, outcome, ended_at, *rest in rows
        ]

    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        state = yield from self._begin()
        filters = [None if names is None else listed(names) for names in wanted]
        rows = yield self._say("listen", *filters, state.now + micros(length))
        return int(rows[0][0])

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        """Looks first: with no mail and nothing to renew it writes nothing."""
        rows = yield self._look("listening", listener, self._now())
        if not rows[0][2] and renewed is None:
            return Heard([], bool(rows[0][0]), rows[0][1] or 0)
        state = yield from self._begin()
        rows = yield self._say("listening", listener, state.now)
        alive, behind = bool(rows[0][0]), rows[0][1] or 0
        mail = yield self._say("hear", listener, limit)
        if mail:
            yield self._say("heard", listener, mail[-1][0])
        if alive and renewed is not None:
            yield self._say("keep_listening", listener, state.now + micros(renewed))
        return Heard(list(_events(mail)), alive, behind)

    def unlisten(self, listener: int) -> Plan[None]:
        yield from self._begin()
        yield self._say("unlisten", listener)
        yield self._say("forget_mail")


def _events(mail: Sequence[Row]) -> Iterable[Event]:
    for _, at, what, events in mail:
        for id, queue, channel, kind in json.loads(events):
            yield Event(what, id, queue, channel, kind, moment(at))
