"""A channel in a claim: how much it may start now, by lanes if by kind, and its rows afterwards."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from laneway.engines.fairness import (
    OLDEST_OF,
    QUANTUM,
    Pace,
    RunTime,
    Share,
    TimeShare,
    next_skips,
    rate_limit,
    start_order,
    startable,
)
from laneway.plan import Row

Start = tuple[int, int, int]
"""A message that may start: priority, due, id."""
_PRIORITY, _POSITION = itemgetter(0), itemgetter(1, 2)

HIGH = 61
"""Which priorities a channel may have messages of, is kept as bits of one number (its bands), so
that one with few of them is known from its row alone. A priority below this has a bit of its own;
all from here on share this bit, and which of them there are, the waiting messages tell
(``high_priorities``). A number in SQLite has 63 bits."""


def band(priority: int) -> int:
    return 1 << min(priority, HIGH)


def bands_of(priorities: Iterable[int]) -> int:
    bands = 0
    for priority in priorities:
        bands |= band(priority)
    return bands


def low_priorities(bands: int) -> list[int]:
    """Those that have a bit of their own, the highest first."""
    own = bands & ((1 << HIGH) - 1)
    return [priority for priority in reversed(range(own.bit_length())) if own >> priority & 1]


def has_high(bands: int) -> bool:
    return bool(bands >> HIGH)


def several(bands: int) -> bool:
    """Whether there may be several priorities."""
    return has_high(bands) or bool(bands & (bands - 1))


class SqliteDueReads:
    """What is due of a channel, read from its highest priority down and no further than it must be:
    once ``reach`` are known a lower priority can only have the longest waiting, so no more of it is
    read than are owed such a start."""

    def __init__(self, reach: int, skips: int) -> None:
        self.starts: list[Start] = []
        self.all_known = True
        self._reach = reach
        self._owed = (skips + reach) // OLDEST_OF
        self._asked = 0

    def most(self) -> int:
        """How many to read of the next priority; 0: none, though there may be some."""
        self._asked = max(self._reach - len(self.starts), self._owed)
        self.all_known = self.all_known and self._asked > 0
        return self._asked

    def add(self, rows: Sequence[Row]) -> None:
        self.starts += rows  # type: ignore[arg-type]
        self.all_known = self.all_known and len(rows) < self._asked


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
        self.weight: float = weight
        self.share = Share(credit, QUANTUM * weight)
        self.rate = rate_limit(rate, burst)
        self.taken: list[Start] = []
        self.known: list[Start] = []
        """What is due, as far as it was read: enough to start the first ``reach``."""
        self.reach = 0
        self.all_known = False

    def go_by_time(self, pace: Pace, row: Row | None) -> None:
        """Its queue is fair by time. ``row``: of fair_channels."""
        terms = self.weight, self.leased, self.now
        if row is None:
            self.share = TimeShare(pace, None, *terms)
            return
        *values, count, took, ended_at, emptied = row
        known = RunTime(*values)
        rested = max(known.since, ended_at) if emptied and not self.leased else None
        ended = count, took
        self.share = TimeShare(pace, known, *terms, ended, rested is not None, rested)

    def time_row(self) -> tuple[Any, ...] | None:
        """Parameters of note_time, if its queue is fair by time."""
        if not isinstance(self.share, TimeShare):
            return None
        taken = len(self.taken)
        return self.id, *self.share.after(self.leased + taken), self.emptied

    @property
    def emptied(self) -> bool:
        return self.waiting == len(self.taken)

    @property
    def mixed(self) -> bool:
        """Whether it has several priorities."""
        return several(self.bands)

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


# A channel in a claim by kind: its lanes of these kinds, and their rows afterwards.


class SqliteLane:
    """One kind of the channel. ``known``: what is due of it, as far as it was read."""

    turn: int
    waiting: int
    bands: int
    kind: str

    def __init__(self, row: Row) -> None:
        _, self.turn, _, _, _, _, self.waiting, _, self.bands, _, _, _, self.kind, *_ = row
        self.known: list[Start] = []


class SqliteKindVisit(SqliteClaimChannel):
    """Made from the rows of lanes_of_channels. The first lane has waited longest for its turn: its
    credit and its skips count for all of them."""

    channel_bands: int
    channel_skips: int
    channel_waiting: int

    def __init__(self, rows: Sequence[Row], now: int) -> None:
        *_, self.channel_bands, self.channel_skips, self.channel_waiting, _ = rows[0]
        super().__init__(rows[0][:12], now)
        self.lanes = [SqliteLane(row) for row in rows]
        self.waiting = sum(lane.waiting for lane in self.lanes)
        for lane in self.lanes:
            self.bands |= lane.bands
        self.first_turn = self.turn
        self.held = False
        """Whether its next message is of another kind, and must start first."""
        self.held_until: int | None = None

    @property
    def emptied(self) -> bool:
        return self.channel_waiting == len(self.taken)

    @property
    def strict(self) -> bool:
        """Whether it starts one message at a time, in order over all kinds."""
        return self.concurrency == 1

    @property
    def plain(self) -> bool:
        """Whether starting these changes nothing but counts: no limit, and more is left."""
        limited = self.concurrency is not None or self.rate is not None
        return not limited and self.channel_waiting > len(self.taken)

    def runs(self) -> list[tuple[int, int, int, int, int]]:
        """Channel, priority, due, first and last id of messages that were taken and between which
        there can be no others: ids of one due time without a gap."""
        runs: list[list[int]] = []
        for priority, due, id in sorted(self.taken):
            if runs and runs[-1][:2] == [priority, due] and runs[-1][3] == id - 1:
                runs[-1][3] = id
            else:
                runs.append([priority, due, id, id])
        return [(self.id, *run) for run in runs]  # type: ignore[misc]

    def merged(self) -> list[Start]:
        """What is known of all lanes, in order if there is one priority."""
        starts = [start for lane in self.lanes for start in lane.known]
        return sorted(starts) if len(self.lanes) > 1 and not self.mixed else starts

    def taken_of(self, lane: SqliteLane) -> list[Start]:
        if len(self.lanes) == 1:
            return self.taken
        known = set(lane.known)
        return [start for start in self.taken if start in known]

    def last_of_lanes(self) -> list[tuple[Any, ...]]:
        """Channel, kind, priority, due and id of the last message taken of each priority."""
        last = []
        for lane in self.lanes:
            by_priority = {start[0]: start for start in sorted(self.taken_of(lane))}
            last += [(self.id, lane.kind, *start) for start in by_priority.values()]
        return last

    def used_up(self, lane: SqliteLane) -> bool:
        """Whether nothing is due of it any more, though messages may wait for later."""
        return self.all_known and not self.held and len(self.taken_of(lane)) == len(lane.known)

    def lane_after(self, lane: SqliteLane) -> tuple[Any, ...]:
        """Parameters of update_served_lane."""
        moved = self.turn != self.first_turn
        skips = next_skips(self.skips, len(self.taken)) if self.mixed else 0
        turn = self.turn if moved else lane.turn
        taken = len(self.taken_of(lane))
        return self.id, lane.kind, taken, self.share.credit, skips, turn

    def starts_after(self) -> tuple[Any, ...]:
        """Parameters of update_starts."""
        open_at = None if self.rate is None else self.rate.open_at(self.tat, self.now)
        skips = self.channel_skips
        if self.strict:
            mixed = several(self.channel_bands)
            skips = next_skips(skips, len(self.taken)) if mixed else 0
        return self.id, self.tat, open_at, skips
