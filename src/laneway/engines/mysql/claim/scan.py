"""The first step of a claim: find the channels whose turn comes next. Only reads.

A channel is found in the ring (channels with known work, ordered by turn) or by its wakes (rows
that publish and others append: something changed in this channel).

Every client remembers floors: where the live part of the ring and of the wakes begins, so that it
does not read deleted entries again. A transaction that commits late appears below the floors. It is
found by a full scan, which starts at the very beginning. A full scan is made

- whenever the scan from the floors finds nothing,
- once a second,
- after a claim that was not filled, if something turned up below the floors.
"""

import time
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import timedelta
from math import floor, inf
from types import MappingProxyType
from typing import Any, NamedTuple

from laneway.engines.fairness import QUANTUM
from laneway.engines.kind_pauses import put_back_for
from laneway.engines.mysql.base import MysqlSql, text
from laneway.engines.times import SECOND
from laneway.plan import Plan, Row

from .channel import PARKED

_FULL_SCAN_EVERY = 1.0  # seconds
# Sessions commit out of order by some milliseconds; that much is scanned again.
_MARGIN = SECOND // 5
# Once a channel is served, its own wakes are read from further back: an older message whose commit
# took this long still starts before a newer one.
_LATE = 60 * SECOND
_MAX_WAKES = 200_000
UNSORTED = b"-"
"""The lane of what claims by kind may not find yet."""


class ReadyChannel(NamedTuple):
    """A channel whose turn it may be. ``place`` is the time by which it is queued."""

    id: bytes
    place: int
    supply: int
    """How many messages it can start, as far as its row and its wakes tell."""
    weight: float
    ringed: bool
    """Whether it was found in the ring, not only by its wakes."""
    known: bool
    """Whether the channel has a row."""
    queue: bytes
    name: bytes


class ReadyRow(NamedTuple):
    """A row of ready_channels and the like; what its columns hold depends on the kind."""

    kind: Any
    id: Any
    at: Any
    n: Any
    queue: Any
    name: Any
    exists: Any
    wakes: Any
    slots: Any
    allowed: Any
    weight: Any
    credit: Any


class NextDue(NamedTuple):
    """When something may start next: the next turn (far in the future if there are only parked
    channels) and the next wake."""

    turn: int | None
    wake: int | None


class Floors(NamedTuple):
    turn: int
    wake: int


class Scan(NamedTuple):
    """What a scan found."""

    channels: list[ReadyChannel]
    now: int
    next_due: NextDue
    start: Floors
    cut: bool
    """Whether there was more to read, or others are in the ring that were not chosen: of a lane it
    is not known how much it has, so what was chosen may turn out to be nothing."""
    ends: tuple[int | None, ...] = ()
    """Of the pauses of whole queues; None: for good."""
    kinds: Mapping[tuple[str, str], timedelta] = MappingProxyType({})
    """Those that are paused, and for how long to put their messages back."""
    closed: Set[bytes] = frozenset()
    """The queues that are paused: nothing of them is in ``channels``."""
    pauses: int = 0
    """How many there were, of any queue."""
    by_kind: int = 0
    """How many queues are claimed by kind."""
    limited: bool = False
    """Whether anything waits for shared limits."""
    fair: int = 0
    """How many queues are fair by time."""
    life: int = 0
    """The number of this life of the server, 0: it has not begun, or is not known yet."""
    all: bool = False
    """Whether these are all channels that may start something."""
    out_of_turn: Mapping[bytes, int] | None = None
    """How many of each channel to start, whosever turn it is."""

    @property
    def wake_from(self) -> int:
        """From when on the channels' own wakes are read."""
        return self.start.wake - _LATE


Whose = tuple[tuple[str, ...], tuple[bytes, ...] | None]
"""Queues and lanes of a claim; None: all kinds."""


class MysqlScan:
    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql
        # All of these only save work: a claim is correct without them.
        self._floors: dict[Whose, Floors] = {}
        self.floors_life = 0
        self._full_scan_at: dict[Whose, float] = {}
        self._turns_needed: dict[Whose, int] = {}
        self._wakes_needed: dict[Whose, int] = {}

    def scan(self, whose: Whose, want: int, offset: int, each: int = QUANTUM) -> Plan[Scan]:
        """``each``: how many messages a channel of weight 1 is likely to start."""
        scan = yield from self._scan_at_once(whose, want, offset, each)
        life = scan.life or (yield from self._sql.begun_life(0))
        if life == self.floors_life:
            return scan
        # What was behind the floors may be there again.
        self.floors_life = life
        for known in (self._floors, self._turns_needed, self._wakes_needed):
            known.clear()
        return (yield from self._full_scan(whose, want, offset, None, each))

    def _scan_at_once(self, whose: Whose, want: int, offset: int, each: int) -> Plan[Scan]:
        floors = self._floors.get(whose)
        if floors is None or self._seconds() >= self._full_scan_at.get(whose, -inf):
            return (yield from self._full_scan(whose, want, offset, floors, each))
        scan = yield from self._scan_from(whose, want, offset, floors, floors, each)
        if not scan.channels:
            scan = yield from self._full_scan(whose, want, offset, floors, each)
        return scan

    def _full_scan(
        self, whose: Whose, want: int, offset: int, known: Floors | None, each: int
    ) -> Plan[Scan]:
        self._full_scan_at[whose] = self._seconds() + _FULL_SCAN_EVERY
        return (yield from self._scan_from(whose, want, offset, None, known, each))

    def _seconds(self) -> float:
        now = self._sql.now()
        return time.monotonic() if now is None else now / SECOND

    def _scan_from(
        self,
        whose: Whose,
        want: int,
        offset: int,
        floors: Floors | None,
        known: Floors | None,
        each: int,
    ) -> Plan[Scan]:
        start = Floors(-PARKED, -PARKED) if floors is None else floors
        turns = min(max(2 * (want // QUANTUM) + 8, self._turns_needed.get(whose, 0)), want + 8)
        wakes = min(max(turns, self._wakes_needed.get(whose, 0)), want + 10)
        while True:
            params = (*start, turns, offset, wakes, offset, self._sql.now())
            rows = yield from self._scan_rows(whose, params)
            ring = [row for row in rows if row.kind == 0]
            woken = [row for row in rows if row.kind == 1]
            pauses = [row for row in rows if row.kind == 5]
            closed = {bytes(row.queue): row.at for row in pauses if row.name is None}
            if closed:
                ring = [row for row in ring if bytes(row.queue) not in closed]
                woken = [row for row in woken if bytes(row.queue) not in closed]
                rows = [row for row in rows if row.queue is None or bytes(row.queue) not in closed]
            now, number, by_kind, fair, life = max(
                (int(row.at), int(row.n), int(row.exists), int(row.wakes), int(row.slots or 0))
                for row in rows
                if row.kind == 4
            )
            merged = _merged(ring, woken, known, now, each)
            channels = _chosen(merged, want)
            short = supply(channels) < want
            ring_cut = len(ring) >= turns
            read = sum(int(row.wakes) for row in woken)
            wakes_cut = read >= wakes
            # Many wakes of few channels: read on, so that other channels need not wait for them.
            crowded = 10 * len(woken) < read
            if ring_cut and short and turns < want:
                turns = want
            elif wakes_cut and (short or crowded) and wakes < _MAX_WAKES:
                wakes = want + 10 if wakes < want else 10 * wakes
            else:
                break
        self._turns_needed[whose] = 2 * sum(channel.ringed for channel in channels)
        self._wakes_needed[whose] = 2 * read if wakes_cut or wakes > turns else 0
        if closed:
            # Floors of fewer queues would hide what waits in the others.
            self._floors.pop(whose, None)
        elif offset == 0:
            self._floors[whose] = Floors(_first(ring, now) - _MARGIN, _first(woken, now) - _MARGIN)
        kinds = _paused_kinds(pauses, now)
        ends = tuple(None if until is None else int(until) for until in closed.values())
        due, cut = _next_due(rows), ring_cut or wakes_cut or len(channels) < len(merged)
        limited = any(row.kind == 6 for row in rows)
        numbers = number, by_kind
        scan = Scan(channels, now, due, start, cut, ends, kinds, set(closed), *numbers, limited)
        return scan._replace(fair=fair, all=short and not cut, life=life)

    def _scan_rows(self, whose: Whose, params: Sequence[Any]) -> Plan[Sequence[ReadyRow]]:
        """The rows of ready_channels; for a claim of some kinds those of its lanes."""
        queues, lanes = whose
        names = [queue.encode() for queue in queues]
        if lanes is not None:
            rows = [*(yield self._sql.union("ready_plain_wakes", [(q, *params) for q in names]))]
            asked = [(q, *params, lane) for q in names for lane in (*lanes, UNSORTED)]
            rows += yield self._sql.union("ready_lanes", asked)
            return joined(map(_ready_row, rows))
        ready = yield self._sql.union("ready_channels", [(q, *params) for q in names])
        found = [_ready_row(row) for row in ready]
        if not any(row.kind == 4 and int(row.exists) for row in found):
            return found
        more = yield self._sql.union("ready_kind_wakes", [(q, *params) for q in names])
        return joined([*found, *map(_ready_row, more)])

    def read_next_due(self, whose: Whose, scan: Scan) -> Plan[tuple[NextDue, bool]]:
        """And whether something was committed late, below where the scan started."""
        params = (scan.now, *scan.start)
        open = [queue.encode() for queue in whose[0] if queue.encode() not in scan.closed]
        if not open:
            return NextDue(None, None), False
        lanes = whose[1]
        if lanes is None:
            rows = [*(yield self._sql.union("next_due", [(queue, *params) for queue in open]))]
            if scan.by_kind:
                rows += yield self._sql.union("next_kind_due", [(queue, *params) for queue in open])
        else:
            rows = [
                *(yield self._sql.union("next_plain_wake", [(queue, *params) for queue in open]))
            ]
            asked = [(queue, *params, lane) for queue in open for lane in (*lanes, UNSORTED)]
            rows += yield self._sql.union("next_lane_due", asked)
        turns, wakes, late = zip(*rows, strict=True)
        missed = any(map(int, late))
        if missed:
            self._full_scan_at.pop(whose, None)
        return NextDue(_lowest(turns), _lowest(wakes)), missed


def _ready_row(row: Row) -> ReadyRow:
    kind, *rest = row
    return ReadyRow(int(kind), *rest)


def _paused_kinds(pauses: Sequence[ReadyRow], now: int) -> dict[tuple[str, str], timedelta]:
    found = {}
    for _, _, until, since, queue, kind, *_ in pauses:
        if kind is not None:
            left = None if until is None else timedelta(microseconds=int(until) - now)
            length = put_back_for(timedelta(microseconds=now - int(since)), left)
            found[text(queue) or "", text(kind) or ""] = length
    return found


def joined(rows: Iterable[ReadyRow]) -> list[ReadyRow]:
    """One row of the ring and one of wakes for each channel that several lanes or both tables of
    wakes tell of."""
    found: dict[tuple[int, bytes], ReadyRow] = {}
    others = []
    for row in rows:
        if row.kind > 1:
            others.append(row)
        elif (key := (row.kind, bytes(row.id))) not in found:
            found[key] = row
        else:
            one = found[key]
            at, n = min(int(one.at), int(row.at)), int(one.n) + int(row.n)
            found[key] = one._replace(at=at, n=n, wakes=int(one.wakes) + int(row.wakes))
    return [*found.values(), *others]


def _merged(
    ring: Sequence[ReadyRow], woken: Sequence[ReadyRow], known: Floors | None, now: int, each: int
) -> list[ReadyChannel]:
    """A channel in the ring keeps its turn whatever its wakes say. A wake that was committed late
    queues at the end, so that nobody gains by holding a transaction open."""
    wakes = {bytes(row.id): row for row in woken}
    channels = []
    for row in ring:
        id = bytes(row.id)
        wake = wakes.pop(id, row)
        # The count can be too low: messages may be claimed before the wake that counts them.
        total = max(int(row.n) + (int(wake.n) if wake is not row else 0), 1)
        supply, weight = _supply(total, wake, each), _weight(row)
        names = row.queue, row.name
        channels.append(ReadyChannel(id, int(row.at), supply, weight, True, True, *names))
    for row in wakes.values():
        place = now if known is not None and int(row.at) < known.wake else int(row.at)
        supply, weight = _supply(int(row.n), row, each), _weight(row)
        about = False, bool(row.exists), row.queue, row.name
        channels.append(ReadyChannel(bytes(row.id), place, supply, weight, *about))
    # Channels that were served by the same claim have the same place: the heavier came first.
    return sorted(channels, key=lambda channel: (channel.place, -channel.weight, channel.id))


def _weight(row: ReadyRow) -> float:
    return 1.0 if row.weight is None else float(row.weight)


def _supply(n: int, row: ReadyRow, each: int) -> int:
    slots, allowed, credit = row.slots, row.allowed, row.credit
    portion = max(1, each * _weight(row))
    most = [n, portion if credit is None or credit < 1 else credit]
    most += [float(bound) + 1e-9 for bound in (slots, allowed) if bound is not None]
    return max(0, floor(min(most)))


def _chosen(channels: Sequence[ReadyChannel], want: int) -> list[ReadyChannel]:
    """As many from the ring as fill the batch, and as many by their wakes: the turn of those may
    turn out to be still to come."""
    before = {True: 0, False: 0}
    chosen = []
    for channel in channels:
        if before[channel.ringed] < want:
            chosen.append(channel)
            before[channel.ringed] += channel.supply
    return chosen[: 2 * want + 50]


def supply(channels: Sequence[ReadyChannel]) -> int:
    """How many messages one round over the channels can start."""
    return sum(channel.supply for channel in channels)


def _first(rows: Sequence[ReadyRow], now: int) -> int:
    return min((int(row.at) for row in rows), default=now)


def _next_due(rows: Sequence[ReadyRow]) -> NextDue:
    return NextDue(*(_lowest(row.at for row in rows if row.kind == kind) for kind in (2, 3)))


def _lowest(times: Iterable[int | None]) -> int | None:
    return min((int(time) for time in times if time is not None), default=None)
