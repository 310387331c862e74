"""Part of every verb that moves messages: what happened goes into the mailboxes of those who
listen, one row for each of them."""

import json
from collections.abc import Iterator, Sequence

from penstock.plan import Plan, Row

from .base import Base
from .names import text

_EVENTS = 250

Told = tuple[int, str, str, str]
"""Message id, queue, channel, kind."""


class Telling(Base):
    def _tell(self, what: str, ids: Sequence[int]) -> Plan[None]:
        """Of messages that wait or are leased."""
        if ids and (listeners := (yield self._say("listeners", self._now(), what.encode()))):
            rows = yield self._say("messages_told", list(ids))
            yield from self._post(what, [told(*row) for row in rows], listeners)

    def _tell_each(self, what: str, events: Sequence[Told]) -> Plan[None]:
        """Of what is no message any more, or not yet."""
        if events and (listeners := (yield self._say("listeners", self._now(), what.encode()))):
            yield from self._post(what, events, listeners)

    def _post(self, what: str, events: Sequence[Told], listeners: Sequence[Row]) -> Plan[None]:
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
            if wanted:
                mail += [(id, now, what.encode(), part) for part in _letters(wanted)]
        yield from self._say_rows("mail", mail)


def _letters(events: Sequence[Told]) -> Iterator[bytes]:
    """As JSON; what one row holds must fit into a statement."""
    for start in range(0, len(events), _EVENTS):
        yield json.dumps(events[start : start + _EVENTS], ensure_ascii=False).encode()


def told(id: int, queue: bytes, channel: bytes, kind: bytes) -> Told:
    return int(id), text(queue) or "", text(channel) or "", text(kind) or ""
