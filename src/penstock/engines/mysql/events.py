"""Events: mailboxes that the verbs write to and their readers empty; and how messages ended."""

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta

from penstock.event import Ending, Event, EventFilter, Heard
from penstock.plan import Plan, Row

from .base import Base
from .names import text
from .repeating import repeatable
from .times import length as micros_of
from .times import moment, moment_or_none


class Events(Base):
    @repeatable
    def endings(self, ids: Sequence[int]) -> Plan[list[Ending | None]]:
        rows = yield self._say("endings", sorted(set(ids)))
        found = {int(row[0]): _ending(row) for row in rows}
        return [found[id] for id in ids]

    @repeatable
    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        filters = [None if names is None else json.dumps(list(names)) for names in wanted]
        yield self._say("listen", self._now(), micros_of(length), *filters)
        rows = yield self._say("last_id")
        return int(rows[0][0])

    @repeatable
    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        """Only the reader deletes, so what it has read is what is there to be deleted."""
        rows = yield self._say("listening", self._now(), listener)
        alive, behind, now = rows[0] if rows else (False, 0, 0)
        mail = yield self._say("hear", listener, limit)
        if mail:
            yield self._say("mail_drop", [int(row[0]) for row in mail])
        if alive and renewed is not None:
            yield self._say("keep_listening", int(now) + micros_of(renewed), listener)
        return Heard(list(_events(mail)), bool(alive), int(behind))

    @repeatable
    def unlisten(self, listener: int) -> Plan[None]:
        """Upkeep takes the mail away."""
        yield self._say("unlisten", self._now(), listener)


def _events(mail: Sequence[Row]) -> Iterable[Event]:
    for _, at, what, events in mail:
        for id, queue, channel, kind in json.loads(events):
            yield Event(text(what), id, queue, channel, kind, moment(at))  # type: ignore[arg-type]


def _ending(row: Row) -> Ending | None:
    id, outcome, ended_at, *why = row
    if outcome is None:
        return None
    reason, error_type, error = map(text, why)
    return Ending(int(id), text(outcome), moment_or_none(ended_at), reason, error_type, error)  # type: ignore[arg-type]
