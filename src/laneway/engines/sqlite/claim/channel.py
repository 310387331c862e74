"""A channel in a claim: how much it may start now, and its row afterwards."""

from operator import itemgetter
from typing import Any

from laneway.engines.fairness import (
    QUANTUM,
    Share,
    next_skips,
    rate_limit,
    start_order,
    startable,
)
from laneway.plan import Row

Start = tuple[int, int, int]
"""A message that may start: priority, due, id."""
_PRIORITY, _POSITION = itemgetter(0), itemgetter(1, 2)


class SqliteClaimChannel:
    """Made from a row of ready_channels; ``taken`` grows from round to round."""

    id: int
    turn: int
    concurrency: int | None
    waiting: int
    leased: int
    bands: int
    tat: int | None
    skips: int

    def __init__(self, row: Row, now: int) -> None:
        (
            self.id,
            self.turn,
            weight,
            self.concurrency,
            rate,
            burst,
            self.waiting,
            self.leased,
            self.bands,
            self.tat,
            credit,
            self.skips,
        ) = row
        self.now = now
        self.share = Share(credit, QUANTUM * weight)
        self.rate = rate_limit(rate, burst)
        self.taken: list[Start] = []
        self.known: list[Start] = []
        """What is due, as far as it was read: the first ``reach`` of each priority."""
        self.reach = 0
        self.all_known = False

    @property
    def priorities(self) -> list[int]:
        return [band for band in range(self.bands.bit_length()) if self.bands >> band & 1]

    @property
    def mixed(self) -> bool:
        """Whether it has several priorities."""
        return bool(self.bands & (self.bands - 1))

    def room(self) -> int:
        """How many more its limits let start now."""
        taken = len(self.taken)
        waiting, leased = self.waiting - taken, self.leased + taken
        return startable(waiting, leased, self.concurrency, self.rate, self.tat, self.now)

    def learn(self, starts: list[Start], reach: int, all_known: bool) -> None:
        self.known, self.reach, self.all_known = starts, reach, all_known

    def has_more(self) -> bool:
        return not self.all_known or len(self.known) > len(self.taken)

    def take(self, count: int) -> int:
        """Starts up to ``count`` more, and returns how many there were."""
        before = len(self.taken)
        if self.mixed:
            self._take_by_priority(before + count)
        else:
            self.taken = self.known[: before + count]
        started = len(self.taken) - before
        if self.rate is not None and started:
            self.tat = self.rate.after(started, self.tat, self.now)
        return started

    def _take_by_priority(self, total: int) -> None:
        """What was taken in an earlier round stays ahead of the rest."""
        chosen = start_order(self.known, total, self.skips, _PRIORITY, _POSITION)
        self.taken = list(dict.fromkeys([*self.taken, *chosen]))[:total]

    def last_taken(self) -> list[tuple[int, int, int, int]]:
        """Channel, priority, due and id of the last message taken of each priority."""
        if not self.mixed:
            return [(self.id, *start) for start in self.taken[-1:]]
        last = {start[0]: start for start in sorted(self.taken)}
        return [(self.id, *start) for start in last.values()]

    def next_due(self) -> int | None:
        """When the first message that was not taken became due, of those that are known."""
        if self.waiting == len(self.taken) or not self.has_more():
            return None
        if len(self.known) > len(self.taken) and not self.mixed:
            return self.known[len(self.taken)][1]
        taken = set(self.taken)
        return min((start[1] for start in self.known if start not in taken), default=self.now)

    def row_after(self, next_due: int | None) -> tuple[Any, ...]:
        """Parameters of update_served_channel. A channel that may not start anything now gives up
        its turn and its credit."""
        waiting = self.waiting - len(self.taken)
        leased = self.leased + len(self.taken)
        full = self.concurrency is not None and leased >= self.concurrency
        open_at = None if self.rate is None else self.rate.open_at(self.tat, self.now)
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
            self.share.credit if ready else 0,
            next_skips(self.skips, len(self.taken)) if waiting and self.mixed else 0,
            self.turn if ready else None,
            None if ready else ready_at,
        )
