"""Fairness as pure functions, for the engines that compute it in Python: MySQL and SQLite.

(PostgreSQL computes the same in ``claim_visit_v1`` and ``claim_pick_v1``.)

- Channels take turns (deficit round robin): in a round each may start ``QUANTUM`` messages times
  its weight. A visit that the end of a batch cuts short keeps its turn and the rest of its share.
- A channel starts no more than its limits allow: waiting messages, concurrency, and rate.
- In a queue that is fair by time, channels are charged for how long their handlers take, not for
  starts (``TimeShare``).
- In a channel the highest priority starts first, but one start in ``OLDEST_OF`` goes to the message
  that has waited longest, so that no priority starves.
- Messages that wait for shared limits and others take turns, claim by claim (``LimitedClaims``).

Times are microseconds.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from heapq import heapify, heapreplace
from math import ceil, floor
from typing import NamedTuple, TypeVar

from laneway.model import ClaimStatus
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Taken
from laneway.shared_limits import limits_of

QUANTUM = 10
"""Messages that a channel of weight 1 may start in a round."""
OLDEST_OF = 10

_SECOND = 1_000_000
# A float just below a whole number counts as that number.
_ROUNDING = 1e-9

T = TypeVar("T")


class RateLimit(NamedTuple):
    """A generic cell rate algorithm (GCRA). All that it remembers is ``tat``, the theoretical
    arrival time: the further it lies ahead of now, the more of the burst is used up."""

    rate: float
    """Starts per second."""
    burst: int

    def tokens(self, tat: int | None, now: int) -> int:
        """How many may start at once."""
        ahead = max(0, (tat or now) - now) / _SECOND
        return floor(self.burst - ahead * self.rate + _ROUNDING)

    def after(self, started: int, tat: int | None, now: int) -> int:
        """The next ``tat``, rounded up to a microsecond: rounding to the nearest would let more
        start than the rate allows."""
        return max(tat or now, now) + ceil(started / self.rate * _SECOND - 1e-3)

    def open_at(self, tat: int | None, now: int) -> int | None:
        """When the next one may start; None if it may now."""
        if tat is None or self.tokens(tat, now) >= 1:
            return None
        return tat - floor((self.burst - 1) / self.rate * _SECOND)

    def latest(self, now: int) -> int:
        """The ``tat`` of a burst that is used up just now: under a new rate no later one counts."""
        return now + ceil(self.burst / self.rate * _SECOND)


def rate_limit(rate: float | None, burst: int | None) -> RateLimit | None:
    return None if rate is None else RateLimit(rate, burst or 0)


def startable(
    waiting: int,
    leased: int,
    concurrency: int | None,
    limit: RateLimit | None,
    tat: int | None,
    now: int,
) -> int:
    """How many messages the limits of a channel let start now."""
    most = waiting
    if concurrency is not None:
        most = min(most, concurrency - leased)
    if limit is not None:
        most = min(most, limit.tokens(tat, now))
    return max(0, most)


class Share:
    """A channel's share of one batch."""

    def __init__(self, credit: float, portion: float) -> None:
        self.credit = credit
        """What is left of its share: 1 or more if the end of a batch cut its visit short."""
        self.portion = portion
        """Its part of a round."""
        self.cut = False
        """Whether the batch ended before or during its last visit: then it keeps its turn."""

    def rounds_to(self, count: int) -> int:
        """After how many rounds it may have started so many."""
        return ceil(count / self.portion)

    def offer(self, rounds: int) -> float:
        """Its part of the next ``rounds``; the rest of a visit that was cut short is one round."""
        first = self.credit if self.credit >= 1 else self.credit + self.portion
        return first + (rounds - 1) * self.portion

    def visit(self, rounds: int, room: int, left: int) -> int:
        """How many it may start in so many rounds. ``room`` is what its limits allow, ``left`` what
        the batch has room for."""
        offer = self.offer(rounds)
        wanted = min(int(offer), room)
        count = min(wanted, left)
        self.cut = count < wanted
        if count or not self.cut:
            self.credit = offer - count if self.cut else offer - int(offer)
        return count


RESTED = 3600.0
"""A channel that comes back owes no more than this, in seconds."""
_MEMORY = 4
"""The moving mean of run times counts for as many messages as this."""
_MOST_ROUNDS = 1 << 40


class Pace(NamedTuple):
    """A queue that is fair by time: how much every channel has had that could use it, and how far
    ahead of that one may get. Seconds of worker time, by weight."""

    reached: float
    turn: float


class RunTime(NamedTuple):
    """What is remembered of a channel in a queue that is fair by time."""

    used: float
    """What its ended handlers took, in seconds, by weight."""
    booked: float
    """With what runs, each message at its usual time: the lowest is next."""
    cost: float
    """The moving mean of its run times; 0 while none has ended."""
    since: int
    """When it was visited last; while ``cost`` is 0, since when it runs something."""


class TimeShare(Share):
    """A channel's share of one batch, by the time that its handlers take.

    What runs is charged at the channel's usual time, and at its end the true time takes the place
    of that. While no message of the channel has ended, one that runs is charged a turn, or as long
    as it has run. Whoever rested joins where the others are; whoever did not is at most two
    messages behind."""

    def __init__(
        self,
        pace: Pace,
        known: RunTime | None,
        weight: float,
        leased: int,
        now: int,
        ended: tuple[int, int] = (0, 0),
        resting: bool = True,
        rested: int | None = None,
    ) -> None:
        """``leased``: its leases now. ``ended``: of how many the end is not charged yet, and how
        long they took in all. ``rested``: since when it rests, if it does."""
        super().__init__(0.0, 1.0)
        self._pace, self._weight = pace, weight
        self._done = 0
        used, _, cost, since = known or RunTime(pace.reached, pace.reached, 0.0, now)
        count, took = ended[0], ended[1] / _SECOND
        used += took / weight
        if count:
            cost = (_MEMORY * cost + took) / (_MEMORY + count) if cost else took / count
        self._since = since if not cost and leased > 0 else now
        ran = (now - since) / _SECOND if leased > 0 else 0.0
        self._cost = cost
        self._each = max(cost, 1e-6) if cost else max(pace.turn * weight, ran)
        booked = used + max(0, leased) * self._each / weight
        if resting:
            owed = booked - max(0, now - (since if rested is None else rested)) / _SECOND
            bound = max(pace.reached, min(owed, pace.reached + RESTED))
        else:
            bound = max(pace.reached - 2 * max(pace.turn, self._each / weight), booked)
        self._used = used + bound - booked
        self._booked = bound

    def rounds_to(self, count: int) -> int:
        ahead = self._booked - self._pace.reached + count * self._each / self._weight
        return min(max(1, ceil(ahead / self._pace.turn) + 1 - self._done), _MOST_ROUNDS)

    def offer(self, rounds: int) -> float:
        """How many it may start until it is so many turns ahead: at least one, if it is not."""
        pace = self._pace
        room = pace.reached + (self._done + rounds) * pace.turn - self._booked
        if room <= 0:
            return 0.0
        return max(1.0 if self._cost else 0.0, floor(room * self._weight / self._each + _ROUNDING))

    def visit(self, rounds: int, room: int, left: int) -> int:
        wanted = min(int(self.offer(rounds)), room)
        count = min(wanted, left)
        self.cut = count < wanted
        if not self.cut:
            self._done += rounds
        self._booked += count * self._each / self._weight
        return count

    def after(self, leased: int) -> RunTime:
        """What to remember of it, with so many leases."""
        booked = self._used + leased * self._each / self._weight
        return RunTime(self._used, booked, self._cost, self._since)


def whole_rounds(offers: Sequence[tuple[Share, int]], left: int, most: int) -> int:
    """How many whole rounds over all channels the batch has room for. ``offers``: shares, and what
    the limits of their channels allow."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(int(share.offer(middle)), room) for share, room in offers) <= left:
            low = middle
        else:
            high = middle - 1
    return low


def rounds_for(supplies: Sequence[int], limit: int) -> int:
    """How many rounds fill a batch, or use up what there is: a power of two, at least as many as
    it takes at weight 1."""
    rounds, total = 1, sum(supplies)
    reach = sum(min(supply, QUANTUM) for supply in supplies)
    while reach < limit and reach < total:
        rounds *= 2
        reach = sum(min(supply, rounds * QUANTUM) for supply in supplies)
    return rounds


def divide(offers: Sequence[tuple[Share, int]], limit: int, rounds: int) -> list[int]:
    """How many each channel may start: as many whole rounds as the batch has room for, and then
    one more in order until it is full. At most ``rounds``."""
    whole = whole_rounds(offers, limit, rounds)
    counts = [share.visit(whole, room, limit) if whole else 0 for share, room in offers]
    left = limit - sum(counts)
    if whole < rounds:
        for number, (share, room) in enumerate(offers):
            count = share.visit(1, room - counts[number], left)
            counts[number] += count
            left -= count
    return counts


def start_order(
    found: Sequence[T],
    total: int,
    skips: int,
    priority: Callable[[T], int],
    position: Callable[[T], tuple[int, int]],
) -> list[T]:
    """The ``total`` messages that start next: those that waited longest, as many as are owed a
    start, then by priority. ``found`` has the first ``total`` of each priority, ``skips`` is the
    number of starts since the last one that was owed; ``position`` is due time and id.

    A larger total only adds messages.
    """
    oldest = sorted(found, key=position)
    owed = (skips + total) // OLDEST_OF
    rest = sorted(oldest[owed:], key=lambda one: (-priority(one), position(one)))
    return [*oldest[:owed], *rest][:total]


def next_skips(skips: int, started: int) -> int:
    """``skips`` after so many starts."""
    return (skips + started) % OLDEST_OF


_ZERO = timedelta(0)
ChannelId = int | bytes


class LimitLane(NamedTuple):
    """Of a message that starts. ``passed``: how much the lane has had, None if it is new; ``due``:
    from when on the message was."""

    channel_id: ChannelId
    queue: str | bytes
    weight: float
    passed: float | None
    due: int


class Lane(NamedTuple):
    """A channel that waits for a set of limits. ``passed``: how much it has had, by weight.
    ``most``: how many it may start, by its own concurrency."""

    channel_id: ChannelId
    passed: float
    weight: float
    most: int | None


def shares(lanes: Sequence[Lane], room: int) -> dict[int | bytes, int]:
    """How many of each lane are next: always of the one that has had the least."""
    counts: dict[int | bytes, int] = {}
    heap = [(lane.passed, number) for number, lane in enumerate(lanes)]
    heapify(heap)
    for _ in range(room if heap else 0):
        passed, number = heap[0]
        lane = lanes[number]
        counts[lane.channel_id] = counts.get(lane.channel_id, 0) + 1
        heapreplace(heap, (passed + 1 / lane.weight, number))
    most = {lane.channel_id: lane.most for lane in lanes if lane.most is not None}
    return {id: min(count, most.get(id, count)) for id, count in counts.items()}


class Limited(NamedTuple):
    """A message that was claimed and names limits."""

    id: int
    fence: int
    limits: str


class LimitWaits(NamedTuple):
    """What waits for limits, after some of it was made due."""

    released: int
    waiting: bool
    look_again: timedelta | None
    held: bool = False
    """Whether channels were locked for it."""


NO_WAITS = LimitWaits(0, False, None)


class LimitSteps(NamedTuple):
    """What a claim does in queues in which messages wait for limits. ``start`` takes those that may
    start; it is told what this claim has asked for already. ``claim`` takes others; ``sweep`` sets
    aside what comes behind those that have to wait."""

    claim: Callable[[], Plan[Taken]]
    start: Callable[[Sequence[Limited]], Plan[tuple[Taken, LimitWaits]]]
    admit: Callable[[Sequence[Limited], Taken], Plan[set[int]]]
    sweep: Callable[[Sequence[Limited]], Plan[None]]


def limited_rows(taken: Taken) -> list[Limited]:
    return [
        Limited(row[Column.ID], row[Column.FENCE], limits)
        for row in taken.rows
        if row[Column.HEADERS] is not None
        and (limits := limits_of(row[Column.HEADERS])) is not None
    ]


class LimitedClaims:
    """The queues in which messages wait for limits, as far as this client knows. What may start of
    them is started out of its channel's turn: a slot that gets free is not to wait until everything
    that has to wait too was claimed and put back."""

    def __init__(self, ahead: int = QUANTUM) -> None:
        """``ahead``: how many may start, while claims find nothing else, before others are looked
        at, which may be of tenants that have had less. One where nothing is swept."""
        self.known: set[tuple[str, ...]] = set()
        self._most_ahead = ahead
        self._ahead: dict[tuple[str, ...], int] = {}

    def claim(self, queues: tuple[str, ...], steps: LimitSteps) -> Plan[Taken]:
        """Either what waits for limits and may start, or what a claim takes: in turn while there is
        both, so that neither waits for the other."""
        known, waits = queues in self.known, NO_WAITS
        first = known and self._ahead.get(queues, 1) > 0
        if first:
            taken, waits = yield from steps.start(())
            if taken.rows:
                # What was made due with them is in its channel: that is next.
                left = self._ahead.get(queues, 1) - len(taken.rows)
                self._ahead[queues] = 0 if waits.released else left
                return taken
        taken = yield from steps.claim()
        if taken.limited:
            self.known.add(queues)
        elif known and not waits.waiting:
            self.known.discard(queues)
        known = queues in self.known
        # Also if all that it took has to wait: others that were not asked for yet come behind it.
        self._ahead[queues] = 1 if taken.rows else self._most_ahead
        found = limited_rows(taken)
        if found:
            started = yield from steps.admit(found, taken)
            waiting = [one for one in found if one.id not in started]
            if waiting:
                self.known.add(queues)
                known = True
                yield from steps.sweep(waiting)
                taken = without(taken, {one.id for one in waiting})
        if known and not first and not taken.rows:
            direct, waits = yield from steps.start(found)
            if direct.rows:
                return direct
        return _with_waits(taken, waits)


def without(taken: Taken, waiting: set[int]) -> Taken:
    rows = [row for row in taken.rows if row[Column.ID] not in waiting]
    if rows:
        return taken._replace(rows=rows, look_again=_ZERO)
    # Behind these there may be others.
    return Taken([], ClaimStatus.BUSY, _ZERO, None, None)


def _with_waits(taken: Taken, waits: LimitWaits) -> Taken:
    if waits.released and not taken.rows:
        return taken._replace(status=ClaimStatus.BUSY, look_again=_ZERO)
    if not waits.waiting:
        return taken
    times = [one for one in (taken.look_again, waits.look_again) if one is not None]
    status = ClaimStatus.BLOCKED if taken.status is ClaimStatus.EMPTY else taken.status
    return taken._replace(status=status, look_again=min(times, default=None))
