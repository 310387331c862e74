"""claim: lease messages, fairly over the channels of the given queues.

Invariants: a channel never has more than `concurrency` leases, nor more than `burst + window x
rate` starts in a window. Channels are served least recently served first, `quantum x weight`
messages at a time; inside a channel by priority, due time and publish order. A claim that finds
nothing writes nothing.

Locks: channel rows, with SKIP LOCKED. It waits only while it holds no lock on a row that existed
before: to insert new channel rows (in id order), and once for a channel when all are held by
others. So claims cannot deadlock, neither with each other nor with the verbs that lock channel rows
in id order. Neither wait is long: whoever keeps a channel locked in an open transaction holds up
that channel, not the others. Before it adds leases it shares the lock that a pause of a queue or
kind takes, and may wait for such a pause, which locks no channels.

One pass: scan (which channels are next), lock (their rows), serve (consume their wakes, add leases,
write their schedule back). Every step is a new statement and sees what was committed before it.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from laneway.engines.fairness import QUANTUM, Pace
from laneway.engines.mysql.base import MysqlChannelLocks, MysqlSql
from laneway.engines.mysql.events import MysqlEventOutbox
from laneway.engines.times import micros, moment
from laneway.model import ClaimStatus
from laneway.plan import Plan, Row, Taken

from .channel import PARKED, MysqlTimes
from .scan import MysqlScan, NextDue, ReadyChannel, Scan, Whose, supply
from .serve import MysqlLaneServe

_MAX_PASSES = 20
_MAX_REACH = 1024


class _Progress:
    """What a claim has got so far, and where its next pass looks."""

    def __init__(self, limit: int, offset: int) -> None:
        self.limit = limit
        self.offset = offset
        self.rows: list[Row] = []
        self.claimed_at: int | None = None
        self.locked = False
        """Whether it holds locks."""
        self.more = False
        """Whether there may be more at once."""
        self.reach = 1
        """How many times the limit the next scan looks for."""
        self.now = 0
        self.paces: Mapping[bytes, Pace] | None = None
        """Of the queues that are fair by time."""

    @property
    def left(self) -> int:
        return self.limit - len(self.rows)


class MysqlClaim:
    def __init__(
        self,
        sql: MysqlSql,
        scan: MysqlScan,
        locks: MysqlChannelLocks,
        outbox: MysqlEventOutbox,
        serve: MysqlLaneServe,
        times: MysqlTimes,
    ) -> None:
        self._sql = sql
        self._scan = scan
        self._locks = locks
        self._outbox = outbox
        self._serve = serve
        self._times = times
        # Claims that find channels locked by others start at a random offset, up to this far, so
        # that they do not all try the same channels first.
        self._spread: dict[Whose, int] = {}

    def claim(self, whose: Whose, limit: int, lease: timedelta, worker: str) -> Plan[Taken]:
        if whose[1] is not None:
            yield from self._serve.claim_by_kind(whose[0])
        progress = _Progress(limit, self._random_offset(whose))
        for number in range(_MAX_PASSES):
            want = progress.left * progress.reach
            each = 1 if progress.paces else QUANTUM
            life = self._scan.floors_life
            scan = yield from self._scan.scan(whose, want, progress.offset, each)
            lost = life not in (0, self._scan.floors_life)
            if whose[1] is not None and (lost or scan.by_kind < len(self._serve.kind_queues)):
                # Installed anew, or the server may have forgotten that they are claimed by kind.
                self._serve.kind_queues = frozenset()
                yield from self._serve.claim_by_kind(whose[0])
                continue
            progress.now, progress.more = scan.now, progress.offset > 0
            if not scan.channels:
                if not progress.offset:
                    break
                progress.offset = 0
                continue
            if scan.fair and progress.paces is None:
                progress.paces = yield from self._times.paces(whose[0])
                if progress.paces:
                    continue  # scan for more channels: each is likely to start fewer messages
            locked = yield from self._lock_found(scan, progress.locked)
            self._update_spread(whose, len(scan.channels), len(locked))
            progress.more = progress.more or scan.cut or len(locked) < len(scan.channels)
            if locked:
                yield from self._take(
                    progress, scan, locked, micros(lease), worker.encode(), whose[1]
                )
                if not progress.left or not progress.more:
                    break
            else:
                if progress.locked:
                    break
                if not (yield from self._wait_or_look_further(progress, scan, number)):
                    break
        return (yield from self._taken(progress, whose, scan, micros(lease)))

    def claim_out_of_turn(
        self, whose: Whose, counts: Mapping[Any, int], lease: timedelta, worker: str
    ) -> Plan[Taken]:
        """Up to so many messages of each of these channels, whose rows we have locked."""
        progress = _Progress(sum(counts.values()), 0)
        scan = yield from self._scan.scan(whose, 1, 0)
        locked = [
            row
            for row in (yield from self._locks.lock_free_channels(sorted(counts), self._sql.now()))
            if bytes(row[1]) not in scan.closed
        ]
        if locked and scan.by_kind >= len(self._serve.kind_queues):
            found = [
                ReadyChannel(bytes(id), scan.now, counts[id], 1.0, True, True, queue, name)
                for id, queue, name, *_ in locked
            ]
            scan = scan._replace(channels=found, out_of_turn=counts)
            progress.now, progress.locked = scan.now, True
            progress.paces = (yield from self._times.paces(whose[0])) if scan.fair else None
            yield from self._take(progress, scan, locked, micros(lease), worker.encode(), whose[1])
        return (yield from self._taken(progress, whose, scan, micros(lease)))

    def _lock_found(self, scan: Scan, locked: bool) -> Plan[Sequence[Row]]:
        if not locked:
            new = [channel for channel in scan.channels if not channel.known]
            yield from self._locks.add_channels((c.id, c.queue, c.name) for c in new)
        ids = [channel.id for channel in scan.channels]
        return (yield from self._locks.lock_free_channels(ids, self._sql.now()))

    def _take(
        self,
        progress: _Progress,
        scan: Scan,
        locked: Sequence[Row],
        lease: int,
        worker: bytes,
        lanes: tuple[bytes, ...] | None,
    ) -> Plan[None]:
        progress.locked = True
        # A claim that one channel can fill makes rounds of its own size. A whole quantum of each
        # channel would keep channels waiting that claims take one by one, and a weight only counts
        # if what the end of the batch cuts off is remembered.
        quantum = min(QUANTUM, progress.limit)
        terms = scan, locked, progress.left, quantum, lease, worker, progress.paces or {}
        if scan.by_kind or lanes is not None:
            served = yield from self._serve.serve_lanes(*terms, lanes)
        else:
            served = yield from self._serve.serve(*terms)
        progress.rows += served.rows
        if progress.paces and served.rows:
            yield from self._times.note_reached(progress.paces)
        yield from self._outbox.add_message_events("claimed", [int(row[0]) for row in served.rows])
        if progress.claimed_at is None:
            progress.claimed_at = served.now
        # Nothing: these were wakes of ended leases, or of channels whose turn is still to come.
        progress.reach = 1 if served.rows else min(4 * progress.reach, _MAX_REACH)
        progress.offset = 0
        progress.more = progress.more or served.more

    def _wait_or_look_further(self, progress: _Progress, scan: Scan, number: int) -> Plan[bool]:
        """Others hold every channel that was found: start elsewhere, then look further. When that
        was everything due, wait for the first channel, once, while no lock is held. False if it was
        waited for in vain."""
        if number == 0:
            return True
        if progress.offset:
            progress.offset = 0
        elif scan.cut or supply(scan.channels) >= progress.left * progress.reach:
            # Further than one channel could fill: a few locked ones must not hide all others.
            further = max(4 * progress.reach, QUANTUM // progress.left + 1)
            progress.reach = min(further, _MAX_REACH)
        else:
            progress.locked = yield from self._locks.wait_for_channel(scan.channels[0].id)
            return progress.locked
        return True

    def _taken(self, progress: _Progress, whose: Whose, scan: Scan, lease: int) -> Plan[Taken]:
        if not progress.left:
            start = moment(progress.claimed_at or 0)
            times = (start, start + timedelta(microseconds=lease))
            return Taken(progress.rows, ClaimStatus.GOT, None, *times, scan.kinds, scan.limited)
        next_due = scan.next_due
        if progress.rows:
            # Only the next claim can say whether that was all: to ask here would read everything
            # that was deleted since the oldest snapshot, at every claim.
            progress.more = True
        elif progress.locked:
            next_due, missed = yield from self._scan.read_next_due(whose, scan)
            progress.more = progress.more or missed
        wait = _wait((*next_due, *scan.ends), progress)
        status = _status(next_due, progress)
        if scan.ends and status is ClaimStatus.EMPTY:
            status = ClaimStatus.BLOCKED
        if progress.claimed_at is None:
            return Taken(progress.rows, status, wait, None, None, limited=scan.limited)
        start = moment(progress.claimed_at)
        times = (start, start + timedelta(microseconds=lease))
        return Taken(progress.rows, status, wait, *times, scan.kinds, scan.limited)

    def _random_offset(self, whose: Whose) -> int:
        return random.randint(0, self._spread.get(whose, 0))

    def _update_spread(self, whose: Whose, found: int, locked: int) -> None:
        spread = self._spread.get(whose, 0)
        if 2 * locked < found:
            self._spread[whose] = max(2 * found, min(2 * spread, 16 * found))
        else:
            self._spread[whose] = spread // 2


def _wait(next_due: Sequence[int | None], progress: _Progress) -> timedelta | None:
    if progress.more:
        return timedelta(0)
    times = [time for time in next_due if time is not None and time < PARKED]
    return timedelta(microseconds=max(0, min(times) - progress.now)) if times else None


def _status(next_due: NextDue, progress: _Progress) -> ClaimStatus:
    if progress.rows:
        return ClaimStatus.GOT
    if progress.more:
        return ClaimStatus.BUSY
    return ClaimStatus.EMPTY if next_due.turn is None else ClaimStatus.BLOCKED
