"""Fairness as pure functions, for the engines that compute it in Python: MySQL and SQLite.

(PostgreSQL computes the same in ``claim_visit_v1`` and ``claim_pick_v1``.)

- Channels take turns (deficit round robin): in a round each may start ``QUANTUM`` messages times
  its weight. A visit that the end of a batch cuts short keeps its turn and the rest of its share.
- A channel starts no more than its limits allow: waiting messages, concurrency, and rate.
- In a channel the highest priority starts first, but one start in ``OLDEST_OF`` goes to the message
  that has waited longest, so that no priority starves.

Times are microseconds.
"""

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import NamedTuple, TypeVar

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
