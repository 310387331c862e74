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
from .picking import Found, Picked, found, pick
from .sharing import rounds_for, share
from .visits import Rounds, Visit

_MOST_WAKES = 5_000
_BRANCHES = 200  # selects in one statement


class Served(NamedTuple):
    rows: list[Row]
    now: int
    more: bool
    """Whether more could have been had."""


def _last(look: Look, visits: dict[bytes, Visit], now: int) -> int:
    """The last place that is to be served. What is in the ring and was only seen by its wakes has
    its place there, behind all that was read of it: no news moves it forward."""
    places = [
        lane.place
        for lane in look.lanes
        if lane.ringed or lane.id not in visits or not visits[lane.id].waits(now)
    ]
    return max(places, default=look.lanes[-1].place)


class Serving(Base):
    def _serve(
        self,
        look: Look,
        owned: Sequence[Row],
        limit: int,
        quantum: int,
        lease: int,
        worker: bytes,
    ) -> Plan[Served]:
        visits = {bytes(row[0]): Visit(row) for row in owned}
        order = [visits[lane.id] for lane in look.lanes if lane.id in visits]
        # Never before the look: what was due then must be found.
        now = max(look.now, *(int(visit.channel.now) for visit in order))
        read = yield from self._hear(visits, look.wake_from, now)
        rounds = rounds_for([visit.supply for visit in order], limit)
        last = _last(look, visits, now)
        sole = len(look.lanes) == 1 and look.lanes[0].supply < limit
        for visit in order:
            visit.admit(limit, quantum, last, sole, now)
            visit.limit(rounds, now)
        made = Rounds(share(order, limit, rounds), rounds)
        starting = yield from self._find(order, now)
        rows = yield from self._start(starting, now, now + lease, worker)
        moved = [visit.after(len(p.rows), p.more, p.places, made, now) for visit, p in starting]
        changed = [row for row in moved if row is not None]
        yield from self._say_rows("channels_move", changed)
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
        messages: dict[int, list[Found]] = {}
        for start in range(0, len(wanted), _BRANCHES):
            rows = yield self._say_each("find", wanted[start : start + _BRANCHES])
            for message in map(found, rows):
                messages.setdefault(message.visit, []).append(message)
        return [(visit, _picked(visit, messages.get(n, []))) for n, visit in enumerate(order)]

    def _start(
        self, served: Sequence[tuple[Visit, Picked]], now: int, until: int, worker: bytes
    ) -> Plan[list[Row]]:
        """Leases; answers the rows that the contract asks for."""
        ids = [message.id for _, picked in served for message in picked.rows]
        if not ids:
            return []
        rows = yield self._say("fence")
        fence = int(rows[0][0])
        yield self._say("leases", ids, fence, until, now, worker)
        answers: list[Row] = []
        for visit, picked in served:
            names = _text(visit.channel.queue), _text(visit.channel.name)
            answers += [message.answer(fence, *names) for message in picked.rows]
        return answers


def _picked(visit: Visit, messages: Sequence[Found]) -> Picked:
    if visit.taken == 0:
        return Picked([], bool(visit.places), visit.places)
    return pick(messages, visit.places, visit.taken, visit.channel.skips)


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
