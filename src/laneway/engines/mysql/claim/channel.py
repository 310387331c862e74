"""A channel whose row a claim has locked: which of its messages start, and its row afterwards.

By priority, due time and publish order, except that one start in ten goes to the message that has
waited longest, so that no priority starves.

Positions in a channel: for each priority that has known work, after which message it begins.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from laneway.engines.fairness import (
    OLDEST_OF,
    Pace,
    RunTime,
    Share,
    TimeShare,
    next_skips,
    rate_limit,
    rounds_for,
    start_order,
    startable,
)
from laneway.engines.mysql.base import MysqlSql, text
from laneway.plan import Plan, Row

Position = tuple[int, int]
"""Due time and message id: every message that has not started comes after it."""

Positions = dict[int, Position]


def read_positions(text: bytes | str) -> Positions:
    """From the channel's row: ``priority:due:id``, separated by commas."""
    plain = text.decode() if isinstance(text, bytes) else text
    positions: Positions = {}
    for part in filter(None, plain.split(",")):
        priority, due, id = map(int, part.split(":"))
        positions[priority] = due, id
    return positions


def positions_text(positions: Mapping[int, Position]) -> bytes:
    return ",".join(f"{p}:{due}:{id}" for p, (due, id) in sorted(positions.items())).encode()


def lowest_positions(positions: Positions, others: Iterable[tuple[int, Position]]) -> Positions:
    """The lower of the two positions in each priority."""
    merged = dict(positions)
    for priority, position in others:
        merged[priority] = min(position, merged.get(priority, position))
    return merged


class DueMessage(NamedTuple):
    """A row of due_messages: its numbers, and the other columns."""

    visit: int
    id: int
    due: int
    priority: int
    published_at: int
    first_published_at: int
    attempt: int
    max_attempts: int
    spent: int
    expires_at: int | None
    rest: Row

    @property
    def position(self) -> Position:
        return self.due, self.id

    def claimed_row(self, fence: int, queue: str, channel: str) -> Row:
        """The row that the engine contract asks for."""
        kind, key, content_type, headers, state_type, state, payload = self.rest
        expires_at = self.expires_at
        return (
            self.id,
            fence,
            queue,
            channel,
            text(kind),
            self.priority,
            self.attempt + 1,
            self.max_attempts,
            self.due / 1e6,
            self.published_at / 1e6,
            self.first_published_at / 1e6,
            None if expires_at is None else expires_at / 1e6,
            text(key),
            text(content_type),
            text(headers),
            text(state_type),
            state,
            payload,
            self.spent,
        )


def due_message(row: Row) -> DueMessage:
    numbers = row[0].split(b"," if isinstance(row[0], bytes) else ",")
    # concat_ws leaves nulls out: a message that does not expire has no last number.
    expires_at = int(numbers.pop()) if len(numbers) == 10 else None
    return DueMessage._make((*map(int, numbers), expires_at, row[1:]))


class Picked(NamedTuple):
    """What a claim starts of a channel."""

    rows: list[DueMessage]
    more: bool
    """Whether the channel may have more messages."""
    positions: Positions
    """Where those begin."""


class MysqlDueReads:
    """What was read of a channel, from its highest priority down: ``wanted`` + 1 in all, and of
    each priority as many as are owed a start because they have waited longest."""

    def __init__(self, positions: Positions, wanted: int, skips: int) -> None:
        self.found: list[DueMessage] = []
        self.asked: dict[int, int] = {}
        """How many at most, of which priorities."""
        self._wanted, self._owed = wanted, (skips + wanted) // OLDEST_OF
        self._unread = sorted(positions, reverse=True)

    def next(self, count: int | None) -> list[tuple[int, int]]:
        """So many of the priorities that were not read (None: all), each with how many to read."""
        most = max(self._wanted + 1 - len(self.found), self._owed)
        reading = self._unread[:count] if most > 0 else []
        del self._unread[: len(reading)]
        self.asked |= dict.fromkeys(reading, most)
        return [(priority, most) for priority in reading]


def pick(reads: MysqlDueReads, positions: Positions, wanted: int, skips: int) -> Picked:
    found = reads.found
    taken = list(found[:wanted])
    if len(positions) > 1:
        taken = start_order(found, wanted, skips, attrgetter("priority"), attrgetter("position"))
    counts = dict.fromkeys(positions, 0)
    for row in found:
        counts[row.priority] += 1
    left: Positions = {}
    for priority, position in positions.items():
        mine = [row.position for row in taken if row.priority == priority]
        if counts[priority] > len(mine) or counts[priority] >= reads.asked.get(priority, 0):
            left[priority] = max(mine, default=position)
    return Picked(taken, bool(left), left)


# A channel whose row a claim has locked: how much it may start, and its row afterwards.

PARKED = 1 << 62
"""The turn of a channel that has work and waits for a wake: its limit is full, it is paused, or all
that is left has expired and counts as waiting until upkeep ends it."""


class LockedChannel(NamedTuple):
    """The columns of lock_free_channels."""

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


class ChannelVisit:
    """The channel, what its wakes added, and its share of the batch."""

    def __init__(self, row: Row) -> None:
        self.channel = LockedChannel(*row)
        self.n = self.channel.n
        self.leased = self.channel.leased
        self.positions: Positions = read_positions(self.channel.places)
        self.turn, self.credit = self.channel.turn, self.channel.credit
        """Of the ring in which it was found."""
        self.early = False
        self.share = Share(0.0, 0.0)
        self.quota = self.taken = 0
        self.pace: Pace | None = None
        self.known: RunTime | None = None
        """If its queue is fair by time."""
        self.ended = self.took = 0
        """Leases whose end is not charged yet: how many, and how long they took."""
        self.rate = rate_limit(self.channel.rate, self.channel.burst)

    def add_wakes(self, wakes: Sequence[Row]) -> None:
        """For each priority: how many more messages, how many freed slots, and a position that none
        of those messages comes before."""
        starts: list[tuple[int, Position]] = []
        for _, priority, _, n, freed, due, id, *rest in wakes:
            self.n += int(n)
            self.leased -= int(freed)
            if len(rest) == 3:
                self.took += int(rest[1])
                self.ended += int(rest[2])
            if due is not None:
                starts.append((int(priority), (int(due), int(id) - 1)))
        self.positions = lowest_positions(self.positions, starts)

    @property
    def supply(self) -> int:
        """How many messages wait. The count can be too low, because messages may be claimed before
        the wake that counts them; a known position is never wrong."""
        return max(self.n, 1) if self.positions else 0

    def in_ring(self, now: int) -> bool:
        return self.turn is not None and self.turn <= now

    def set_share(self, limit: int, quantum: int, last: int, sole: bool, now: int) -> None:
        """Its part of a round. ``sole``: it has all the work, and fills the batch."""
        channel = self.channel
        turn = self.turn
        # Its turn is still to come: read its wakes, and leave its place in the ring as it is.
        self.early = turn is not None and last < turn <= now
        self.share = Share(limit if sole else self.credit, quantum * channel.weight)
        if self.pace is not None:
            resting = channel.turn is None and not channel.n and not channel.leased
            ended = self.ended, self.took
            self.share = TimeShare(
                self.pace, self.known, channel.weight, self.leased, now, ended, resting
            )

    @property
    def counted(self) -> bool:
        """Whether its leases are counted."""
        return self.channel.concurrency is not None or self.pace is not None

    def set_quota(self, rounds: int, now: int) -> None:
        """The most that it may start, if the batch were unlimited."""
        channel = self.channel
        if channel.paused or self.early:
            self.quota = 0
            return
        self.quota = min(self._startable(now), int(self.share.offer(rounds)))

    def _startable(self, now: int) -> int:
        channel = self.channel
        return startable(self.supply, self.leased, channel.concurrency, self.rate, channel.tat, now)

    def start_out_of_turn(self, count: int, now: int) -> None:
        """Starts up to ``count``, as its limits allow, and keeps its place in the ring."""
        self.set_share(count, count, now, False, now)
        self.early = True
        if not self.channel.paused:
            self.taken = min(count, self._startable(now))

    def row_after(self, started: int, more: bool, left: Positions, now: int) -> "Row | None":
        """The row to write: (id, queue, name, turn, n, leased, tat, credit, skips, oldest, places);
        None if nothing changed."""
        channel = self.channel
        leased = self.leased + (started if self.counted else 0)
        tat = None if self.rate is None else self.rate.after(started, channel.tat, now)
        n = self.n - started
        turn = self._next_turn(started, tat, now) if more else PARKED if n > 0 else None
        credit = self._next_credit() if more else 0.0
        skips = next_skips(channel.skips, started) if more and len(left) > 1 else 0
        places = positions_text(left) if more else b""
        oldest = min(due for due, _ in left.values()) if more else None
        new = (turn, n, leased, tat, credit, skips, places)
        old = channel.turn, channel.n, channel.leased, channel.tat, channel.credit, channel.skips
        if new == (*old, channel.places):
            return None
        row = (turn, n, leased, tat, credit, skips, oldest, places)
        return (channel.id, channel.queue, channel.name, *row)

    def _next_turn(self, started: int, tat: int | None, now: int) -> int:
        channel = self.channel
        full = channel.concurrency is not None and channel.concurrency - self.leased <= started
        if channel.paused or full:
            return PARKED
        open_at = None if self.rate is None else self.rate.open_at(tat, now)
        if open_at is not None:
            return open_at
        if self.early and channel.turn is not None and channel.turn <= now:
            return channel.turn
        # Cut short, or not reached in the last round: it keeps its turn, if it had one.
        if self.share.cut and channel.turn is not None and channel.turn <= now:
            return channel.turn
        return now

    def _next_credit(self) -> float:
        """What it did not get of its share; a channel that was not reached keeps its credit."""
        unreached = self.share.cut and not self.taken
        return self.channel.credit if self.early or unreached else self.share.credit


def lease_rows(
    served: Sequence[tuple[ChannelVisit, Picked]], numbers: tuple[int, int, int], worker: bytes
) -> list[tuple[Any, ...]]:
    return sorted(
        (m.id, *numbers, visit.channel.id, visit.counted, worker)
        for visit, picked in served
        for m in picked.rows
    )


def rounds_to_fill(order: Sequence[ChannelVisit], limit: int, all: bool) -> int:
    """How many rounds fill the batch. Where channels go by time they get further ahead only if
    nobody else could start anything."""
    rounds = rounds_for([visit.supply for visit in order], limit)
    times = [visit.share for visit in order if visit.pace is not None]
    if not times:
        return rounds
    return max(rounds, *(share.rounds_to(limit) for share in times)) if all else 1


class MysqlTimes:
    """What channels have had of the workers' time, in queues that are fair by time. Read and
    written only under the channel's lock."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def paces(self, queues: Sequence[str]) -> Plan[dict[bytes, Pace]]:
        names = sorted(queue.encode() for queue in queues)
        rows = yield self._sql.statement("fair_paces", names, self._sql.now())
        return {bytes(queue): Pace(float(reached), float(turn)) for queue, reached, turn in rows}

    def note_reached(self, paces: Mapping[bytes, Pace]) -> Plan[None]:
        """It is where those join who come when nobody else is there. Waits for nobody."""
        for queue, pace in paces.items():
            if (yield self._sql.statement("lock_reached", queue, pace.reached)):
                yield self._sql.statement("note_reached", queue, pace.reached)

    def read_times(self, order: Sequence[ChannelVisit], paces: Mapping[bytes, Pace]) -> Plan[None]:
        timed = {v.channel.id: v for v in order if bytes(v.channel.queue) in paces}
        if not timed:
            return
        rows = yield self._sql.statement("fair_channels", sorted(timed))
        known = {
            bytes(id): RunTime(float(used), float(booked), float(cost), int(since))
            for id, used, booked, cost, since in rows
        }
        for id, visit in timed.items():
            visit.pace, visit.known = paces[bytes(visit.channel.queue)], known.get(bytes(id))

    def write_times(self, served: Sequence[tuple[ChannelVisit, int]]) -> Plan[None]:
        rows = [
            (visit.channel.id, visit.channel.queue, *visit.share.after(visit.leased + started))
            for visit, started in served
            if isinstance(visit.share, TimeShare)
        ]
        yield from self._sql.insert("note_times", sorted(rows))
