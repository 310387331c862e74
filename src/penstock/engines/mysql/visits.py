"""One visit to an owned channel: how much it may start, and what is written down afterwards."""

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

from penstock.plan import Row

from . import places
from .places import Place, Places
from .times import SECOND

PARKED = 1 << 62
"""The turn of a channel that has work and waits for a wake: its limit is full, or it is paused."""


class Owned(NamedTuple):
    """The columns of channels_own.sql."""

    id: bytes
    queue: bytes
    name: bytes
    weight: float
    concurrency: int | None
    rate: float | None
    burst: int | None
    paused: int
    turn: int | None
    n: int
    leased: int
    tat: int | None
    credit: float
    skips: int
    places: bytes
    now: int


class Rounds(NamedTuple):
    whole: int
    """How many went into the batch as a whole, over all channels."""
    planned: int


class Visit:
    """The channel, what its wakes told, and its share."""

    def __init__(self, row: Row) -> None:
        self.channel = Owned(*row)
        self.n = self.channel.n
        self.leased = self.channel.leased
        self.places: Places = places.read(self.channel.places)
        self.early = False
        self.first = self.portion = 0.0
        self.quota = self.base = self.upto = self.taken = 0

    def told(self, wakes: Sequence[Row]) -> None:
        """Of each priority: how many more, how many freed, and before which none of them lies."""
        marks: list[tuple[int, Place]] = []
        for _, priority, _, n, freed, due, id in wakes:
            self.n += int(n)
            self.leased -= int(freed)
            if due is not None:
                marks.append((int(priority), (int(due), int(id) - 1)))
        self.places = places.lowest(self.places, marks)

    @property
    def supply(self) -> int:
        """The count can be behind by what was taken ahead of its wake; a known place is not."""
        return max(self.n, 1) if self.places else 0

    def waits(self, now: int) -> bool:
        """Whether it is in the ring."""
        return self.channel.turn is not None and self.channel.turn <= now

    def admit(self, limit: int, quantum: int, last: int, sole: bool, now: int) -> None:
        """Its part of a round. ``sole``: it has all the work, and fills the batch."""
        channel = self.channel
        turn = channel.turn
        # Its turn is yet to come: take note of the wakes and leave it in its place.
        self.early = turn is not None and last < turn <= now
        self.portion = quantum * channel.weight
        self.first = channel.credit if channel.credit >= 1 else channel.credit + self.portion
        if sole:
            self.first = float(limit)
        self.tat = max(channel.tat or now, now)

    def limit(self, rounds: int, now: int) -> None:
        """The most that it may start, if the batch had no end."""
        channel = self.channel
        if channel.paused or self.early:
            self.quota = 0
            return
        most = min(self.first + (rounds - 1) * self.portion, self.supply)
        if channel.concurrency is not None:
            most = min(most, channel.concurrency - self.leased)
        if channel.rate is not None:
            most = min(most, self._allowance(self.tat, now))
        self.quota = max(0, floor(most))

    def _allowance(self, tat: int, now: int) -> float:
        """How many may start at once: a theoretical arrival time in the future uses them up."""
        rate, burst = self.channel.rate or 0.0, self.channel.burst or 0
        return burst - (tat - now) / SECOND * rate + 1e-9

    def after(
        self, started: int, more: bool, left: Places, rounds: Rounds, now: int
    ) -> "Row | None":
        """The row to write: (id, queue, name, turn, n, leased, tat, credit, skips, oldest, places);
        None if nothing changed."""
        channel = self.channel
        leased = self.leased + (started if channel.concurrency is not None else 0)
        tat = self._next_tat(started)
        turn = self._turn(started, tat, now) if more else None
        credit = self._credit(rounds) if more else 0.0
        skips = self._skips(started) if more and len(left) > 1 else 0
        kept = places.written(left) if more else b""
        oldest = min(due for due, _ in left.values()) if more else None
        n = self.n - started
        new = (turn, n, leased, tat, credit, skips, kept)
        old = channel.turn, channel.n, channel.leased, channel.tat, channel.credit, channel.skips
        if new == (*old, channel.places):
            return None
        row = (turn, n, leased, tat, credit, skips, oldest, kept)
        return (channel.id, channel.queue, channel.name, *row)

    def _next_tat(self, started: int) -> int | None:
        if self.channel.rate is None:
            return None
        # Rounded up to the clock's step: rounding to the nearest would let the rate creep over.
        return self.tat + ceil(started / self.channel.rate * SECOND - 1e-3)

    def _turn(self, started: int, tat: int | None, now: int) -> int:
        channel = self.channel
        full = channel.concurrency is not None and channel.concurrency - self.leased <= started
        if channel.paused or full:
            return PARKED
        if self.early and channel.turn is not None:
            return channel.turn
        if tat is not None and self._allowance(tat, now) < 1:
            slack = ((channel.burst or 1) - 1) / (channel.rate or 1.0) * SECOND
            return tat - floor(slack)
        # Cut short, or not reached in the last round: it keeps its turn, if it had one.
        if self.taken < self.upto and channel.turn is not None and channel.turn <= now:
            return channel.turn
        return now

    def _credit(self, rounds: Rounds) -> float:
        if self.early or (self.taken == 0 and self.upto > 0):
            return self.channel.credit
        if self.base < self.taken < self.upto:
            return self.first + rounds.whole * self.portion - self.taken
        # Of the rounds after the first, how many are over for it. (The one that was begun last is
        # no round of its own if all that were planned are whole.)
        cut = self.taken < self.upto
        ended = rounds.whole - 1 if cut else min(rounds.whole, rounds.planned - 1)
        whole = self.first + ended * self.portion
        return whole - floor(whole)

    def _skips(self, started: int) -> int:
        if started and (self.channel.skips + self.taken) // 10 > 0:
            return 0
        return self.channel.skips + started
