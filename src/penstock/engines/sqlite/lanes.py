"""A channel on the bench of a claim: what it may start now, and what is left of it afterwards."""

import math
from operator import itemgetter
from typing import Any

from penstock.plan import Row

QUANTUM = 10
"""Messages that a channel of weight 1 may start in a round."""
OLDEST_OF = 10
"""Of so many starts one goes to the longest waiting, whatever its priority."""


Start = tuple[int, int, int]
"""A message that may start: priority, due, id."""


class Lane:
    """Made from a row of ring.sql; ``taken`` grows as the rounds go."""

    id: int
    turn: int
    weight: float
    concurrency: int | None
    rate: float | None
    burst: int
    waiting: int
    leased: int
    bands: int
    tat: int | None
    credit: float
    skips: int

    def __init__(self, row: Row, now: int) -> None:
        (
            self.id,
            self.turn,
            self.weight,
            self.concurrency,
            self.rate,
            self.burst,
            self.waiting,
            self.leased,
            self.bands,
            self.tat,
            self.credit,
            self.skips,
        ) = row
        self.now = now
        self.taken: list[Start] = []
        self.known: list[Start] = []
        """What is due, as far as it was read: ``reach`` of each priority."""
        self.reach = 0
        self.all_known = False

    @property
    def priorities(self) -> list[int]:
        return [band for band in range(self.bands.bit_length()) if self.bands >> band & 1]

    @property
    def mixed(self) -> bool:
        """Whether it has several priorities."""
        return bool(self.bands & (self.bands - 1))

    @property
    def portion(self) -> float:
        """Its share of a round."""
        return QUANTUM * self.weight

    def room(self) -> int:
        """How many more its limits let start now."""
        room = self.waiting - len(self.taken)
        if self.concurrency is not None:
            room = min(room, self.concurrency - self.leased - len(self.taken))
        if self.rate is not None:
            room = min(room, self._tokens(self.rate))
        return max(0, room)

    def learn(self, starts: list[Start], reach: int, all_known: bool) -> None:
        self.known, self.reach, self.all_known = starts, reach, all_known

    def has_more(self) -> bool:
        return not self.all_known or len(self.known) > len(self.taken)

    def take(self, count: int) -> int:
        """Starts up to ``count`` more, and says how many there were."""
        before = len(self.taken)
        if self.mixed:
            self._take_by_priority(before + count)
        else:
            self.taken = self.known[: before + count]
        started = len(self.taken) - before
        if self.rate is not None and started:
            # Rounded up to the clock's step: rounding to the nearest would let the rate creep over.
            step = math.ceil(started / self.rate * 1e6 - 1e-3)
            self.tat = max(self.tat or self.now, self.now) + step
        return started

    def _take_by_priority(self, total: int) -> None:
        """The highest first, but one start in ten goes to the longest waiting."""
        oldest = sorted(self.known, key=itemgetter(1, 2))[: (self.skips + total) // OLDEST_OF]
        first = sorted(self.known, key=lambda start: (-start[0], *start[1:]))
        chosen = dict.fromkeys([*self.taken, *oldest])
        for start in first:
            if len(chosen) >= total:
                break
            chosen[start] = None
        self.taken = list(chosen)[:total]

    def last_taken(self) -> list[tuple[int, int, int, int]]:
        """Channel, priority, due and id of the last message taken of each priority."""
        if not self.mixed:
            return [(self.id, *start) for start in self.taken[-1:]]
        last = {start[0]: start for start in sorted(self.taken)}
        return [(self.id, *start) for start in last.values()]

    def open_at(self) -> int | None:
        """When its rate allows the next start; None if it does now."""
        if self.rate is None or self.tat is None or self._tokens(self.rate) >= 1:
            return None
        return self.tat - math.floor((self.burst - 1) / self.rate * 1e6)

    def _tokens(self, rate: float) -> int:
        ahead = max(0, (self.tat or self.now) - self.now) / 1e6
        return math.floor(self.burst - ahead * rate + 1e-9)

    def next_due(self) -> int | None:
        """Of what is known: when the first message that was not taken became due."""
        if self.waiting == len(self.taken) or not self.has_more():
            return None
        if len(self.known) > len(self.taken) and not self.mixed:
            return self.known[len(self.taken)][1]
        taken = set(self.taken)
        return min((start[1] for start in self.known if start not in taken), default=self.now)

    def left_behind(self, next_due: int | None) -> tuple[Any, ...]:
        """A row of served.sql. A channel that may not start anything now leaves the ring, and its
        credit with it."""
        waiting = self.waiting - len(self.taken)
        leased = self.leased + len(self.taken)
        full = self.concurrency is not None and leased >= self.concurrency
        open_at = self.open_at()
        ready_at = None
        if waiting and next_due is not None and not full:
            ready_at = max(next_due, open_at or next_due)
        ready = ready_at is not None and ready_at <= self.now
        return (
            self.id,
            waiting,
            leased,
            self.bands if waiting else 0,
            next_due,
            open_at,
            self.tat,
            self.credit if ready else 0,
            (self.skips + len(self.taken)) % OLDEST_OF if waiting and self.mixed else 0,
            self.turn if ready else None,
            None if ready else ready_at,
        )
