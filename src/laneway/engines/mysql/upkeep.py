"""upkeep: periodic maintenance. One session at a time does it; others return at once."""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from laneway.engines.times import DAY, HOUR
from laneway.model import UpkeepReport
from laneway.plan import Plan, Row

from .base import ChannelRef, MysqlChannelLocks, MysqlSql, pair_id, repeatable
from .claim.channel import PARKED
from .events import MysqlEventOutbox
from .flows_release import MysqlNodeEnds
from .operate.control import MysqlControlCleanup, MysqlWorkers
from .operate.minutes import KEPT_DAYS, MysqlFold
from .settle.end import Cause, EndedLease, HistoryRow, MysqlRequeue, MysqlSettleEnd, Requeue
from .settle.lease import MysqlOnce, MysqlResults
from .settle.settle import MysqlCancel, MysqlSettle
from .shared_limits import MysqlSharedLimits

# Part of upkeep: leases that ran out, and messages whose own expiry has passed.

_EXPIRED = Cause(b"max_attempts", b"LeaseExpired", b"the lease ran out before the work was settled")
_MAX_DOUBLINGS = 40


class UpkeepSettings(NamedTuple):
    """The columns of upkeep_settings."""

    now: int
    history: bytes
    history_days: int
    backoff_initial: int
    backoff_max: int
    flows_counted: int
    flows_expired: int
    flows_undecided: int


class ExpiredLeases(NamedTuple):
    expired: int
    buried: int
    floor: int
    """Where the live part of the leases' index begins."""


class MysqlExpire:
    def __init__(
        self,
        sql: MysqlSql,
        outbox: MysqlEventOutbox,
        limits: MysqlSharedLimits,
        requeue: MysqlRequeue,
        ends: MysqlSettleEnd,
        locks: MysqlChannelLocks,
        cancel: MysqlCancel,
    ) -> None:
        self._sql = sql
        self._outbox = outbox
        self._limits = limits
        self._requeue = requeue
        self._ends = ends
        self._locks = locks
        self._cancel = cancel

    def expire(self, floor: int, limit: int, settings: UpkeepSettings) -> Plan[ExpiredLeases]:
        """The message returns to its own channel, later each time. One that has used up
        max_attempts becomes a dead letter here, before its payload can be delivered again."""
        rows = yield self._sql.statement("expired_leases", floor, settings.now, limit)
        start = min((int(row[2]) for row in rows), default=settings.now)
        if not rows:
            return ExpiredLeases(0, 0, start)
        wanted = sorted((int(row[0]), int(row[1])) for row in rows)
        rows = yield self._sql.statement("lock_expired_leases", wanted, settings.now)
        leases = yield from self._without_held_keys([EndedLease(*row) for row in rows])
        if not leases:
            return ExpiredLeases(0, 0, start)
        yield from self._outbox.add_message_events("expired", [lease.id for lease in leases])
        dying = [(lease, _EXPIRED) for lease in leases if _used_up(lease)]
        if settings.history != b"none":
            yield from self._sql.insert("add_history", [_history_row(lease) for lease in leases])
        yield self._sql.statement("delete_leases", [lease.id for lease in leases])
        yield from self._limits.note_expired([lease.id for lease in leases], settings.now)
        yield from self._requeue.requeue(
            [_requeued(x, settings) for x in leases if not _used_up(x)]
        )
        # Whoever held it may have worked all the while.
        freed = [(x.channel_ref, x.claimed_at) for x in leases if x.counted]
        yield from self._ends.free_slots(freed, settings.now)
        if dying:
            yield from self._requeue.add_dead_letters(dying, settings.now)
        return ExpiredLeases(len(leases), len(dying), start)

    def _without_held_keys(self, leases: list[EndedLease]) -> Plan[list[EndedLease]]:
        """Upkeep waits for nobody: a message that would die while somebody holds its key, to
        replace it, dies next time."""
        dying = {pair_id(x.queue, x.key): x.id for x in leases if _used_up(x) and x.key is not None}
        if not dying:
            return leases
        rows = yield self._sql.statement("lock_free_keys", sorted(dying))
        for row in rows:
            del dying[bytes(row[0])]
        if dying:
            rows = yield self._sql.statement("live_keys", list(dying))
            held = {dying[bytes(row[0])] for row in rows}
            leases = [lease for lease in leases if lease.id not in held]
        return leases

    def lapse(self, now: int, limit: int) -> Plan[int]:
        """Ends messages that have expired; claims skip them. Locks their channels as a claim
        does."""
        rows = yield self._sql.statement("lapsed_messages", now, limit)
        if not rows:
            return 0
        gone = [int(row[0]) for row in rows if row[1] is None]
        lapsed = [row for row in rows if row[1] is not None]
        ended = (yield from self._end_lapsed(lapsed, now)) if lapsed else []
        if gone or ended:
            yield self._sql.statement("delete_expiries", sorted([*gone, *ended]))
        return len(ended)

    def _end_lapsed(self, lapsed: Sequence[Row], now: int) -> Plan[list[int]]:
        channels = sorted({(bytes(row[2]), row[3], row[4]) for row in lapsed})
        yield from self._locks.add_channels(channels)
        locked = yield from self._locks.lock_free_channels([id for id, _, _ in channels], now)
        ours = {bytes(row[0]) for row in locked}
        ids = sorted(int(row[1]) for row in lapsed if bytes(row[2]) in ours)
        if ids:
            # Read again: one that was replaced may have more time.
            rows = yield self._sql.statement("still_lapsed", ids, now)
            ids = [int(row[0]) for row in rows]
        return (yield from self._cancel.end_waiting(ids, b"lapsed")) if ids else []


def _used_up(lease: EndedLease) -> bool:
    return lease.spent + 1 >= lease.max_attempts


def _history_row(lease: EndedLease) -> HistoryRow:
    dead = _used_up(lease)
    return lease.history_row(b"expired", dead=dead, reason=b"max_attempts" if dead else None)


def _requeued(lease: EndedLease, settings: UpkeepSettings) -> Requeue:
    doubled = settings.backoff_initial * 2 ** min(lease.spent, _MAX_DOUBLINGS)
    return Requeue(lease, settings.now + min(settings.backoff_max, doubled), True, True)


_DEAD_COUNTS = 100  # rows that looks add up; more are added up here
_WAKES = 5_000
_ALL = 2**62


class MysqlCleanup:
    """Part of upkeep: delete what is no longer needed."""

    def __init__(self, sql: MysqlSql, ends: MysqlSettleEnd) -> None:
        self._sql = sql
        self._ends = ends

    def settle_strays(self, now: int, limit: int) -> Plan[int]:
        """Strays are leases that were charged to a channel's new limit while somebody was writing
        to them. If the lease exists, mark it as counted, so that its end frees the slot. If it is
        gone, free the slot now."""
        rows = yield self._sql.statement("stray_leases", limit)
        if not rows:
            return 0
        gone = [row for row in rows if not row[5]]
        existing = [(int(row[0]), int(row[1])) for row in rows if row[5]]
        done = [(int(row[0]), int(row[1])) for row in gone]
        if existing:
            locked = yield self._sql.statement("lock_uncharged_leases", existing)
            if locked:
                yield self._sql.statement("mark_leases_charged", [row[0] for row in locked])
                done += [(int(row[0]), int(row[1])) for row in locked]
        if done:
            yield self._sql.statement("delete_stray_leases", done)
        freed = [((bytes(row[2]), row[3], row[4]), None) for row in gone]
        yield from self._ends.free_slots(freed, now)
        return len(done)

    def clean_up(self, now: int, days: int, limit: int) -> Plan[tuple[int, int]]:
        """How many keys, channels and mails were deleted, and how many history entries."""
        done = yield from self._delete_expired_keys(now, limit)
        done += yield from self._delete_removed_channels(limit)
        done += yield from self._delete_orphaned_mail(now, limit)
        ((counts, fences, oldest),) = yield self._sql.statement("cleanup_needed", limit)
        if int(counts) >= _DEAD_COUNTS:
            yield from self._add_up_dead_counts(5 * limit)
        if int(fences) >= limit:
            yield from self._delete_fences(10 * limit)
        forgotten = 0
        if oldest is not None and int(oldest) < now - days * DAY:
            kept = now - KEPT_DAYS * DAY
            forgotten = yield from self._delete_old_history(now - days * DAY, kept, limit)
        return done, forgotten

    def _delete_expired_keys(self, now: int, limit: int) -> Plan[int]:
        rows = yield self._sql.statement("expired_keys", now, limit)
        if not rows:
            return 0
        ids = sorted(bytes(row[0]) for row in rows)
        rows = yield self._sql.statement("lock_expired_keys", ids, now)
        if rows:
            yield self._sql.statement("delete_keys", [row[0] for row in rows])
        return len(rows)

    def _delete_removed_channels(self, limit: int) -> Plan[int]:
        """Removed channels whose last message has ended. Their wakes are read before the final
        check for messages: if there are none, those wakes add up to zero. A publish that commits
        later adds its own wake."""
        rows = yield self._sql.statement("removed_channels", limit)
        if not rows:
            return 0
        ids = sorted(bytes(row[0]) for row in rows)
        rows = yield self._sql.statement("lock_removed_channels", ids)
        if not rows:
            return 0
        locked = sorted(bytes(row[0]) for row in rows)
        locked, wakes = yield from self._all_wakes("channel_wakes", locked)
        locked, kind_wakes = yield from self._all_wakes("channel_kind_wakes", locked)
        in_use = {bytes(row[0]) for row in (yield self._sql.statement("channels_in_use", locked))}
        empty = {id for id in locked if id not in in_use}
        if read := [row[0] for row in wakes if bytes(row[1]) in empty]:
            yield self._sql.statement("delete_wakes", read)
        if kinds := [row[0] for row in kind_wakes if bytes(row[1]) in empty]:
            yield self._sql.statement("delete_kind_wakes", kinds)
        if empty:
            yield from self._delete_channels(sorted(empty))
        return len(empty)

    def _all_wakes(self, name: str, ids: list[bytes]) -> Plan[tuple[list[bytes], Sequence[Row]]]:
        """All wakes of as many of these channels as a step may read, and of one at least."""
        rows = yield self._sql.statement(name, ids, _WAKES)
        if len(rows) < _WAKES:
            return ids, rows
        last = bytes(rows[-1][1])
        if ids[0] == last:
            return ids[:1], (yield self._sql.statement(name, ids[:1], _ALL))
        return [id for id in ids if id < last], rows

    def _delete_channels(self, ids: Sequence[bytes]) -> Plan[None]:
        yield self._sql.statement("delete_lanes", ids)
        yield self._sql.statement("delete_times", ids)
        yield self._sql.statement("delete_channels", ids)

    def _delete_orphaned_mail(self, now: int, limit: int) -> Plan[int]:
        """Mail of listeners that are gone. The listeners themselves are deleted an hour later: what
        transactions that are open now write for them is still found until then."""
        rows = yield self._sql.statement("orphaned_mail", now, limit)
        if rows:
            yield self._sql.statement("delete_mail", [int(row[0]) for row in rows])
        elif gone := (yield self._sql.statement("expired_listeners", now - HOUR, limit)):
            yield self._sql.statement("delete_listeners", [int(row[0]) for row in gone])
        return len(rows)

    def _add_up_dead_counts(self, limit: int) -> Plan[None]:
        rows = yield self._sql.statement("read_dead_counts", limit)
        channels: dict[ChannelRef, int] = defaultdict(int)
        queues: dict[bytes, int] = defaultdict(int)
        for _, queue, channel, n in rows:
            channels[pair_id(queue, channel), queue, channel] += int(n)
            queues[queue] += int(n)
        yield self._sql.statement("delete_dead_counts", [row[0] for row in rows])
        changed = sorted((*channel, n) for channel, n in channels.items() if n)
        yield from self._sql.insert("add_dead_sums", changed)
        yield from self._sql.insert("add_dead_queues", sorted(queues.items()))
        if changed:
            yield self._sql.statement("delete_empty_dead_sums", [row[0] for row in changed])

    def _delete_fences(self, limit: int) -> Plan[None]:
        rows = yield self._sql.statement("read_fences", limit)
        yield self._sql.statement("delete_fences", [row[0] for row in rows])

    def _delete_old_history(self, end: int, kept: int, limit: int) -> Plan[int]:
        """Entries past their retention that no lake and no minute still needs: the oldest, one
        batch."""
        stamp = yield from self._lakes_sure()
        rows = yield self._sql.statement("oldest_history", limit, kept, stamp)
        old = [row[0] for row in rows if int(row[1]) < end and row[2]]
        if old:
            yield self._sql.statement("delete_history", old)
        return len(old)

    def _lakes_sure(self) -> Plan[int | None]:
        """Before which stamp every lake is certain to have the history; None if there is none."""
        stamps, lake = [], b""
        while rows := (yield self._sql.statement("next_lake", lake)):
            lake = bytes(rows[0][0])
            ((stamp,),) = yield self._sql.statement("lake_sure", lake)
            stamps.append(int(stamp))
        return min(stamps, default=None)


_STAMP_BATCH = 2_000
_STAMP_LIMIT = 20_000


class MysqlHistoryOrder:
    """The order in which readers follow the history: rows are stamped after their commit.

    Ids alone do not work: a transaction that commits late adds ids below what a reader has already
    passed. Only committed rows are stamped, by one session at a time, so all rows of a stamp become
    visible together, and later stamps later. Readers follow (stamp, id)."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def stamp_history(self) -> Plan[int]:
        """Stamps what is new, if anything; returns the last stamp."""
        rows = yield self._sql.statement("lock_task", b"settle")
        stamp, done = int(rows[0][0]), 0
        while done < _STAMP_LIMIT:
            new = yield self._sql.statement("unstamped_history", _STAMP_BATCH)
            if not new:
                break
            if not done:
                # Stamps that a reader has passed may be lost.
                stamp = max(stamp, (yield from self._sql.server_life()))
            stamp += 1
            yield self._sql.statement("stamp_history", [row[0] for row in new], stamp)
            done += len(new)
            if len(new) < _STAMP_BATCH:
                break
        if done:
            yield self._sql.statement("save_last_stamp", stamp, b"settle")
        return stamp


_LIMIT = 1_000
_FULL_LEASE_SCAN_EVERY = 60.0  # seconds


class MysqlUpkeep:
    def __init__(
        self,
        sql: MysqlSql,
        fold: MysqlFold,
        expire: MysqlExpire,
        cleanup: MysqlCleanup,
        once: MysqlOnce,
        control: MysqlControlCleanup,
        workers: MysqlWorkers,
        results: MysqlResults,
        leases: MysqlSettle,
        nodes: MysqlNodeEnds,
        limits: MysqlSharedLimits,
        history_order: MysqlHistoryOrder,
    ) -> None:
        self._sql = sql
        self._fold = fold
        self._expire = expire
        self._cleanup = cleanup
        self._once = once
        self._control = control
        self._workers = workers
        self._results = results
        self._leases = leases
        self._nodes = nodes
        self._limits = limits
        self._history_order = history_order
        self._lease_floor = -PARKED
        self._lease_floor_life = 0
        self._full_lease_scan_at = 0.0

    @repeatable
    def upkeep(self) -> Plan[UpkeepReport]:
        if not (yield self._sql.statement("try_lock_task", b"upkeep")):
            return UpkeepReport(ran=False)
        rows = yield self._sql.statement("upkeep_settings", self._sql.now())
        settings = UpkeepSettings(*rows[0])
        self._reset_lease_floor(settings.now, (yield from self._sql.server_life()))
        yield from self._fold.fold(settings.now, bytes(settings.history))
        done = yield from self._expire.expire(self._lease_floor, _LIMIT, settings)
        lapsed = yield from self._expire.lapse(settings.now, _LIMIT)
        strays = yield from self._cleanup.settle_strays(settings.now, _LIMIT)
        tidied, forgotten = yield from self._cleanup.clean_up(
            settings.now, settings.history_days, _LIMIT
        )
        tidied += yield from self._once.delete_expired_once(settings.now, _LIMIT)
        tidied += yield from self._control.clean_up_control(settings.now, _LIMIT)
        tidied += yield from self._workers.forget_workers(settings.now, _LIMIT)
        tidied += yield from self._results.delete_expired_results(settings.now, _LIMIT)
        tidied += yield from self._leases.delete_old_progress(settings.now, _LIMIT)
        counted, expired, undecided = (bool(column) for column in settings[-3:])
        tidied += yield from self._nodes.tend_flows(
            counted, expired, undecided, settings.now, _LIMIT
        )
        yield from self._limits.forget_limits(settings.now, _LIMIT)
        stamp = yield from self._history_order.stamp_history()
        yield from self._fold.save_fold_end(stamp, settings.now)
        self._lease_floor = done.floor
        report = (done.expired, done.buried, lapsed, strays + tidied, forgotten)
        return UpkeepReport(True, *report)

    def _reset_lease_floor(self, now: int, life: int) -> None:
        """Once a minute: a claim whose commit took longer than its lease is below the floor. And in
        a new life of the server: leases that had ended may be there again."""
        begun, self._lease_floor_life = life != self._lease_floor_life, life
        if begun or time.monotonic() >= self._full_lease_scan_at or self._lease_floor > now:
            self._full_lease_scan_at = time.monotonic() + _FULL_LEASE_SCAN_EVERY
            self._lease_floor = -PARKED
