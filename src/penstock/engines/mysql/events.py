"""How messages ended; and events, which this engine does not have yet (see ``lacks``)."""

from collections.abc import Sequence
from datetime import timedelta

from penstock.errors import InvalidOption
from penstock.event import Ending, EventFilter, Heard
from penstock.plan import Plan, Row

from .base import Base
from .names import text
from .repeating import repeatable
from .times import moment_or_none

NO_EVENTS = "events are not built for MySQL yet: wait() and the history work"


class Events(Base):
    @repeatable
    def endings(self, ids: Sequence[int]) -> Plan[list[Ending | None]]:
        rows = yield self._say("endings", sorted(set(ids)))
        found = {int(row[0]): _ending(row) for row in rows}
        return [found[id] for id in ids]

    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        raise InvalidOption(NO_EVENTS)

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        raise InvalidOption(NO_EVENTS)

    def unlisten(self, listener: int) -> Plan[None]:
        raise InvalidOption(NO_EVENTS)


def _ending(row: Row) -> Ending | None:
    id, outcome, ended_at, *why = row
    if outcome is None:
        return None
    reason, error_type, error = map(text, why)
    return Ending(int(id), text(outcome), moment_or_none(ended_at), reason, error_type, error)  # type: ignore[arg-type]
