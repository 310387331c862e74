"""Serve the channels whose rows a claim has locked.

Keeps: what it consumes (wakes, positions) it also looks at, in a later statement, and what is left
it writes down again. The sum of n over a channel and its wakes is the number of its waiting
messages, and its `leased` less the wakes' `freed` the number of its counted leases.
"""

from collections.abc import Sequence
from typing import NamedTuple

from penstock.plan import Plan, Row

from .base import Base
from .looking import Look
from .picking import Picked, pick
from .sharing import rounds_for, share
from .visits import Visit

_MOST_WAKES = 5_000
_BRANCHES = 200  # selects in one statement


class Served(NamedTuple):
    rows: list[Row]
    now: int
    more: bool
    """Whether more could have been had."""


class Serving(Base):
    def _serve(
        self, look: Look, owned: Sequence[Row], limit: int, lease: int, worker: bytes
    ) -> Plan[Served]:
        visits = {bytes(row[0]): Visit(row) for row in owned}
        order = [visits[lane.id] for lane in look.lanes if lane.id in visits]
        # Never before the look: what was due then must be found.
        now = max(look.now, *(int(visit.channel.now) for visit in order))
        read = yield from self._hear(visits, look.wake_from, now)
        rounds = rounds_for([visit.supply for visit in order], limit)
        last, sole = look.lanes[-1].place, len(look.lanes) == 1
        for visit in order:
            visit.admit(limit, last, sole, now)
            visit.limit(limit, rounds, now)
        whole = share(order, limit, rounds)
        found = yield from self._find(order, now)
        rows = yield from self._start(found, now, now + lease, worker)
        moved = [visit.after(len(p.rows), p.more, p.places, whole, now) for visit, p in found]
        changed = [row for row in moved if row is not None]
        if changed:
            yield self._say("channels_move", changed)
        if read:
            yield self._say("wakes_drop", read)
        return Served(rows, now, sum(visit.supply for visit in order) > len(rows))

    def _hear(self, visits: dict[bytes, Visit], start: int, now: int) -> Plan[list[int]]:
        """Reads the channels' wakes; answers their ids."""
        rows = yield self._say("wakes_read", sorted(visits), start, now, _MOST_WAKES)
        told: dict[bytes, list[Row]] = {}
        for row in rows:
            told.setdefault(bytes(row[0]), []).append(row)
        for id, wakes in told.items():
            visits[id].told(wakes)
        return [int(id) for row in rows for id in _text(row[2]).split(",")]

    def _find(self, order: Sequence[Visit], now: int) -> Plan[list[tuple[Visit, Picked]]]:
        """The messages of each channel, in the order in which they start."""
        wanted = [
            (number, visit.channel.id, priority, *place, now, visit.taken + 1)
            for number, visit in enumerate(order)
            if visit.taken > 0
            for priority, place in visit.places.items()
        ]
        found: dict[int, list[Row]] = {}
        for start in range(0, len(wanted), _BRANCHES):
            rows = yield self._say_each("find", wanted[start : start + _BRANCHES])
            for row in rows:
                found.setdefault(int(row[0]), []).append(row)
        return [(visit, _picked(visit, found.get(n, []))) for n, visit in enumerate(order)]

    def _start(
        self, found: Sequence[tuple[Visit, Picked]], now: int, until: int, worker: bytes
    ) -> Plan[list[Row]]:
        """Leases; answers the rows that the contract asks for."""
        if not any(picked.rows for _, picked in found):
            return []
        rows = yield self._say("fence")
        fence = int(rows[0][0])
        leases, answers = [], []
        for visit, picked in found:
            channel = visit.channel
            counted = channel.concurrency is not None
            queue, name = _text(channel.queue), _text(channel.name)
            for row in picked.rows:
                leases.append((row[1], fence, until, now, channel.id, counted, worker))
                answers.append(_answer(row, fence, queue, name))
        yield self._say("leases", leases)
        return answers


def _picked(visit: Visit, found: Sequence[Row]) -> Picked:
    if visit.taken == 0:
        return Picked([], bool(visit.places), visit.places)
    return pick(found, visit.places, visit.taken, visit.channel.skips)


def _answer(row: Row, fence: int, queue: str, channel: str) -> Row:
    (
        _,
        id,
        due,
        priority,
        published,
        first,
        expires,
        attempt,
        most,
        kind,
        key,
        content,
        headers,
        state_type,
        state,
        payload,
        spent,
    ) = row
    return (
        id,
        fence,
        queue,
        channel,
        _text(kind),
        priority,
        attempt + 1,
        most,
        due / 1e6,
        published / 1e6,
        first / 1e6,
        None if expires is None else expires / 1e6,
        None if key is None else _text(key),
        _text(content),
        None if headers is None else _text(headers),
        None if state_type is None else _text(state_type),
        state,
        payload,
        spent,
    )


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
