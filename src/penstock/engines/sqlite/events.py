"""How messages ended; and events, which this engine does not have yet (see ``lacks``)."""

from collections.abc import Sequence
from datetime import timedelta

from penstock.errors import InvalidOption
from penstock.event import Ending, EventFilter, Heard
from penstock.plan import Plan

from .base import Base, listed
from .times import moment

NO_EVENTS = "events are not built for SQLite yet: wait() and the history work"


class Events(Base):
    def endings(self, ids: Sequence[int]) -> Plan[list[Ending | None]]:
        rows = yield self._look("endings", listed(ids))
        return [
            None if outcome is None else Ending(id, outcome, moment(ended_at), *rest)
            for id, outcome, ended_at, *rest in rows
        ]

    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        raise InvalidOption(NO_EVENTS)

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        raise InvalidOption(NO_EVENTS)

    def unlisten(self, listener: int) -> Plan[None]:
        raise InvalidOption(NO_EVENTS)
