"""Part of upkeep: leases that ran out, and messages whose own expiry has passed."""

from collections.abc import Sequence
from typing import NamedTuple

from laneway.engines.mysql.names import pair_id
from laneway.engines.mysql.settle.cancel import MysqlCancel
from laneway.engines.mysql.settle.end import HistoryRow
from laneway.engines.mysql.settle.ended_lease import EndedLease
from laneway.engines.mysql.settle.requeue import Cause, MysqlRequeue, Requeue
from laneway.plan import Plan, Row

_EXPIRED = Cause(b"max_attempts", b"LeaseExpired", b"the lease ran out before the work was settled")
_MAX_DOUBLINGS = 40


class UpkeepSettings(NamedTuple):
    """The columns of upkeep_settings."""

    now: int
    history: bytes
    history_days: int
    backoff_initial: int
    backoff_max: int


class ExpiredLeases(NamedTuple):
    expired: int
    buried: int
    floor: int
    """Where the live part of the leases' index begins."""


class MysqlExpire(MysqlRequeue, MysqlCancel):
    def _expire(self, floor: int, limit: int, settings: UpkeepSettings) -> Plan[ExpiredLeases]:
        """The message returns to its own channel, later each time. One that has used up
        max_attempts becomes a dead letter here, before its payload can be delivered again."""
        rows = yield self._statement("expired_leases", floor, settings.now, limit)
        start = min((int(row[2]) for row in rows), default=settings.now)
        if not rows:
            return ExpiredLeases(0, 0, start)
        wanted = sorted((int(row[0]), int(row[1])) for row in rows)
        rows = yield self._statement("lock_expired_leases", wanted, settings.now)
        leases = yield from self._without_held_keys([EndedLease(*row) for row in rows])
        if not leases:
            return ExpiredLeases(0, 0, start)
        yield from self._add_message_events("expired", [lease.id for lease in leases])
        dying = [(lease, _EXPIRED) for lease in leases if _used_up(lease)]
        if settings.history != b"none":
            yield from self._insert("add_history", [_history_row(lease) for lease in leases])
        yield self._statement("delete_leases", [lease.id for lease in leases])
        yield from self._requeue([_requeued(x, settings) for x in leases if not _used_up(x)])
        yield from self._free_slots((x.channel_ref for x in leases if x.counted), settings.now)
        if dying:
            yield from self._add_dead_letters(dying, settings.now)
        return ExpiredLeases(len(leases), len(dying), start)

    def _without_held_keys(self, leases: list[EndedLease]) -> Plan[list[EndedLease]]:
        """Upkeep waits for nobody: a message that would die while somebody holds its key, to
        replace it, dies next time."""
        dying = {pair_id(x.queue, x.key): x.id for x in leases if _used_up(x) and x.key is not None}
        if not dying:
            return leases
        rows = yield self._statement("lock_free_keys", sorted(dying))
        for row in rows:
            del dying[bytes(row[0])]
        if dying:
            rows = yield self._statement("live_keys", list(dying))
            held = {dying[bytes(row[0])] for row in rows}
            leases = [lease for lease in leases if lease.id not in held]
        return leases

    def _lapse(self, now: int, limit: int) -> Plan[int]:
        """Ends messages that have expired; claims skip them. Locks their channels as a claim
        does."""
        rows = yield self._statement("lapsed_messages", now, limit)
        if not rows:
            return 0
        gone = [int(row[0]) for row in rows if row[1] is None]
        lapsed = [row for row in rows if row[1] is not None]
        ended = (yield from self._end_lapsed(lapsed, now)) if lapsed else []
        if gone or ended:
            yield self._statement("delete_expiries", sorted([*gone, *ended]))
        return len(ended)

    def _end_lapsed(self, lapsed: Sequence[Row], now: int) -> Plan[list[int]]:
        channels = sorted({(bytes(row[2]), row[3], row[4]) for row in lapsed})
        yield from self._add_channels(channels)
        locked = yield from self._lock_free_channels([id for id, _, _ in channels], now)
        ours = {bytes(row[0]) for row in locked}
        ids = sorted(int(row[1]) for row in lapsed if bytes(row[2]) in ours)
        if ids:
            # Read again: one that was replaced may have more time.
            rows = yield self._statement("still_lapsed", ids, now)
            ids = [int(row[0]) for row in rows]
        return (yield from self._end_waiting(ids, b"lapsed")) if ids else []


def _used_up(lease: EndedLease) -> bool:
    return lease.spent + 1 >= lease.max_attempts


def _history_row(lease: EndedLease) -> HistoryRow:
    dead = _used_up(lease)
    return lease.history_row(b"expired", dead=dead, reason=b"max_attempts" if dead else None)


def _requeued(lease: EndedLease, settings: UpkeepSettings) -> Requeue:
    doubled = settings.backoff_initial * 2 ** min(lease.spent, _MAX_DOUBLINGS)
    return Requeue(lease, settings.now + min(settings.backoff_max, doubled), True, True)
