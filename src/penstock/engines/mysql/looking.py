"""The look of a claim: which channels are next, from the floors on. Reads only.

Floors are the client's memory of where the live part of the ring and of the wakes begins. What
commits late lies to the left of them and is found by a look from the left edge, which is made
whenever the look from the floors finds nothing, once a second, and after a claim that was not
filled and found something there in the end.
"""

import time
from collections.abc import Iterable, Sequence
from math import floor, inf
from typing import NamedTuple

from penstock.plan import Plan, Row

from .base import Base, Clock
from .sharing import QUANTUM
from .times import SECOND
from .visits import PARKED

_FULL_LOOK_EVERY = 1.0  # seconds
# Sessions commit out of order by some milliseconds; that much is looked at again.
_MARGIN = SECOND // 5
# A channel that is visited hears its own wakes from further back: an elder message whose commit
# took this long still starts before a younger one.
_LATE = 60 * SECOND
_MOST_SPAN = 200_000


class Lane(NamedTuple):
    """A channel whose turn it may be. ``place`` is the time that gave it its turn."""

    id: bytes
    place: int
    supply: int
    """What a visit can start, as far as one can tell from here."""
    weight: float
    ringed: bool
    known: bool
    """Whether the channel has a row."""
    queue: bytes
    name: bytes


class Look(NamedTuple):
    lanes: list[Lane]
    now: int
    later: "Later"
    start: "Floors"
    cut: bool
    """Whether there was more to read."""

    @property
    def wake_from(self) -> int:
        """From when on the channels' own wakes are heard."""
        return self.start.wake - _LATE


class Later(NamedTuple):
    """When something may start next: a turn (far in the future: only parked channels) or a wake."""

    turn: int | None
    wake: int | None


class Floors(NamedTuple):
    turn: int
    wake: int


class Looking(Base):
    def __init__(self, schema: str = "penstock", clock: Clock | None = None) -> None:
        super().__init__(schema, clock)
        # They only save work: older ones, or none, are always right too.
        self._floors: dict[tuple[str, ...], Floors] = {}
        self._full_look_at: dict[tuple[str, ...], float] = {}
        self._turns_needed: dict[tuple[str, ...], int] = {}
        self._wakes_needed: dict[tuple[str, ...], int] = {}

    def _look(self, queues: tuple[str, ...], want: int, offset: int) -> Plan[Look]:
        floors = self._floors.get(queues)
        if floors is None or self._seconds() >= self._full_look_at.get(queues, -inf):
            return (yield from self._full_look(queues, want, offset, floors))
        look = yield from self._look_from(queues, want, offset, floors, floors)
        if not look.lanes:
            look = yield from self._full_look(queues, want, offset, floors)
        return look

    def _full_look(
        self, queues: tuple[str, ...], want: int, offset: int, known: Floors | None
    ) -> Plan[Look]:
        self._full_look_at[queues] = self._seconds() + _FULL_LOOK_EVERY
        return (yield from self._look_from(queues, want, offset, None, known))

    def _seconds(self) -> float:
        now = self._now()
        return time.monotonic() if now is None else now / SECOND

    def _look_from(
        self,
        queues: tuple[str, ...],
        want: int,
        offset: int,
        floors: Floors | None,
        known: Floors | None,
    ) -> Plan[Look]:
        start = Floors(-PARKED, -PARKED) if floors is None else floors
        turns = min(max(2 * (want // QUANTUM) + 8, self._turns_needed.get(queues, 0)), want + 8)
        wakes = min(max(turns, self._wakes_needed.get(queues, 0)), want + 10)
        while True:
            params = (*start, turns, offset, wakes, offset, self._now())
            rows = yield self._say_each("look", [(q.encode(), *params) for q in queues])
            ring = [row for row in rows if int(row[0]) == 0]
            calls = [row for row in rows if int(row[0]) == 1]
            now = max(int(row[2]) for row in rows if int(row[0]) == 4)
            lanes = _chosen(_merged(ring, calls, known, now), want)
            short = supply(lanes) < want
            ring_cut = len(ring) >= turns
            read = sum(int(row[7]) for row in calls)
            calls_cut = read >= wakes
            # Many wakes of few channels: read on, or those behind them would wait for them.
            thin = 10 * len(calls) < read
            if ring_cut and short and turns < want:
                turns = want
            elif calls_cut and (short or thin) and wakes < _MOST_SPAN:
                wakes = want + 10 if wakes < want else 10 * wakes
            else:
                break
        self._turns_needed[queues] = 2 * sum(lane.ringed for lane in lanes)
        self._wakes_needed[queues] = 2 * read if calls_cut or wakes > turns else 0
        if offset == 0:
            self._floors[queues] = Floors(_first(ring, now) - _MARGIN, _first(calls, now) - _MARGIN)
        return Look(lanes, now, _later(rows), start, ring_cut or calls_cut)

    def _later(self, queues: tuple[str, ...], look: Look) -> Plan[tuple[Later, bool]]:
        """And whether something was committed late, to the left of the look."""
        params = (look.now, *look.start)
        rows = yield self._say_each("next", [(queue.encode(), *params) for queue in queues])
        missed = any(int(row[2]) for row in rows)
        if missed:
            del self._full_look_at[queues]
        return Later(_lowest(row[0] for row in rows), _lowest(row[1] for row in rows)), missed


def _merged(
    ring: Sequence[Row], calls: Sequence[Row], known: Floors | None, now: int
) -> list[Lane]:
    """A channel in the ring keeps its turn whatever its wakes say; a wake that came late joins at
    the end, so that holding a transaction open buys no place."""
    news = {bytes(row[1]): row for row in calls}
    lanes = []
    for row in ring:
        _, id, turn, n, queue, name, *_ = row
        call = news.pop(bytes(id), row)
        # The count can be behind by what was taken ahead of its wake.
        total = max(int(n) + (int(call[3]) if call is not row else 0), 1)
        supply, weight = _supply(total, call), _weight(row)
        lanes.append(Lane(bytes(id), int(turn), supply, weight, True, True, queue, name))
    for row in news.values():
        _, id, at, n, queue, name, row_exists, *_ = row
        place = now if known is not None and int(at) < known.wake else int(at)
        supply, weight = _supply(int(n), row), _weight(row)
        lanes.append(Lane(bytes(id), place, supply, weight, False, bool(row_exists), queue, name))
    # Those whose visits ended in the same claim have one place: the heavier were served first.
    return sorted(lanes, key=lambda lane: (lane.place, -lane.weight, lane.id))


def _weight(row: Row) -> float:
    return 1.0 if row[10] is None else float(row[10])


def _supply(n: int, row: Row) -> int:
    slots, allowed, _, credit = row[8:]
    portion = max(1, QUANTUM * _weight(row))
    most = [n, portion if credit is None or credit < 1 else credit]
    most += [float(bound) + 1e-9 for bound in (slots, allowed) if bound is not None]
    return max(0, floor(min(most)))


def _chosen(lanes: Sequence[Lane], want: int) -> list[Lane]:
    """As many as fill the batch from the ring, and as many from the wakes: those may turn out to be
    news of channels whose turn is yet to come."""
    before = {True: 0, False: 0}
    chosen = []
    for lane in lanes:
        if before[lane.ringed] < want:
            chosen.append(lane)
            before[lane.ringed] += lane.supply
    return chosen[: 2 * want + 50]


def supply(lanes: Sequence[Lane]) -> int:
    """What one round over them can give."""
    return sum(lane.supply for lane in lanes)


def _first(rows: Sequence[Row], now: int) -> int:
    return min((int(row[2]) for row in rows), default=now)


def _later(rows: Sequence[Row]) -> Later:
    return Later(*(_lowest(row[2] for row in rows if int(row[0]) == kind) for kind in (2, 3)))


def _lowest(times: Iterable[int | None]) -> int | None:
    return min((int(time) for time in times if time is not None), default=None)
