"""Part of upkeep: delete what is no longer needed.

The order in which readers follow the history: rows are stamped after their commit.

Ids alone do not work: a transaction that commits late adds ids below what a reader has already
passed. Only committed rows are stamped, by one session at a time, so all rows of a stamp become
visible together, and later stamps later. Readers follow (stamp, id).
"""

from collections import defaultdict

from laneway.engines.mysql.base import MysqlBase
from laneway.engines.mysql.claim.lock import ChannelRef
from laneway.engines.mysql.names import pair_id
from laneway.engines.mysql.operate.fold import KEPT_DAYS
from laneway.engines.mysql.settle.end import MysqlSettleEnd
from laneway.engines.times import DAY, HOUR
from laneway.plan import Plan

_DEAD_COUNTS = 100  # rows that looks add up; more are added up here


class MysqlCleanup(MysqlSettleEnd):
    def _settle_strays(self, now: int) -> Plan[int]:
        """Strays are leases that were charged to a channel's new limit while somebody was writing
        to them. If the lease exists, mark it as counted, so that its end frees the slot. If it is
        gone, free the slot now."""
        rows = yield self._statement("stray_leases")
        if not rows:
            return 0
        gone = [row for row in rows if not row[5]]
        existing = [(int(row[0]), int(row[1])) for row in rows if row[5]]
        done = [(int(row[0]), int(row[1])) for row in gone]
        if existing:
            locked = yield self._statement("lock_uncharged_leases", existing)
            if locked:
                yield self._statement("mark_leases_charged", [row[0] for row in locked])
                done += [(int(row[0]), int(row[1])) for row in locked]
        if done:
            yield self._statement("delete_stray_leases", done)
        yield from self._free_slots(((bytes(row[2]), row[3], row[4]) for row in gone), now)
        return len(done)

    def _clean_up(self, now: int, days: int, limit: int) -> Plan[tuple[int, int]]:
        """How many keys, channels and mails were deleted, and how many history entries."""
        done = yield from self._delete_expired_keys(now, limit)
        done += yield from self._delete_removed_channels(limit)
        done += yield from self._delete_orphaned_mail(now, limit)
        ((counts, fences, oldest),) = yield self._statement("cleanup_needed", limit)
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
        rows = yield self._statement("expired_keys", now, limit)
        if not rows:
            return 0
        ids = sorted(bytes(row[0]) for row in rows)
        rows = yield self._statement("lock_expired_keys", ids, now)
        if rows:
            yield self._statement("delete_keys", [row[0] for row in rows])
        return len(rows)

    def _delete_removed_channels(self, limit: int) -> Plan[int]:
        """Removed channels whose last message has ended. Their wakes are read before the final
        check for messages: if there are none, those wakes add up to zero. A publish that commits
        later adds its own wake."""
        rows = yield self._statement("removed_channels", limit)
        if not rows:
            return 0
        ids = sorted(bytes(row[0]) for row in rows)
        rows = yield self._statement("lock_removed_channels", ids)
        if not rows:
            return 0
        locked = [bytes(row[0]) for row in rows]
        wakes = yield self._statement("channel_wakes", locked)
        kind_wakes = yield self._statement("channel_kind_wakes", locked)
        in_use = {bytes(row[0]) for row in (yield self._statement("channels_in_use", locked))}
        empty = [id for id in locked if id not in in_use]
        read = [row[0] for row in wakes if bytes(row[1]) not in in_use]
        if read and empty:
            yield self._statement("delete_wakes", read)
        kinds = [row[0] for row in kind_wakes if bytes(row[1]) not in in_use]
        if kinds and empty:
            yield self._statement("delete_kind_wakes", kinds)
        if empty:
            yield self._statement("delete_lanes", empty)
            yield self._statement("delete_channels", empty)
        return len(empty)

    def _delete_orphaned_mail(self, now: int, limit: int) -> Plan[int]:
        """Mail of listeners that are gone. The listeners themselves are deleted an hour later: what
        transactions that are open now write for them is still found until then."""
        rows = yield self._statement("orphaned_mail", now, limit)
        if rows:
            yield self._statement("delete_mail", [int(row[0]) for row in rows])
        elif gone := (yield self._statement("expired_listeners", now - HOUR)):
            yield self._statement("delete_listeners", [int(row[0]) for row in gone])
        return len(rows)

    def _add_up_dead_counts(self, limit: int) -> Plan[None]:
        rows = yield self._statement("read_dead_counts", limit)
        channels: dict[ChannelRef, int] = defaultdict(int)
        queues: dict[bytes, int] = defaultdict(int)
        for _, queue, channel, n in rows:
            channels[pair_id(queue, channel), queue, channel] += int(n)
            queues[queue] += int(n)
        yield self._statement("delete_dead_counts", [row[0] for row in rows])
        changed = sorted((*channel, n) for channel, n in channels.items() if n)
        yield from self._insert("add_dead_sums", changed)
        yield from self._insert("add_dead_queues", sorted(queues.items()))
        if changed:
            yield self._statement("delete_empty_dead_sums", [row[0] for row in changed])

    def _delete_fences(self, limit: int) -> Plan[None]:
        rows = yield self._statement("read_fences", limit)
        yield self._statement("delete_fences", [row[0] for row in rows])

    def _delete_old_history(self, end: int, kept: int, limit: int) -> Plan[int]:
        """Entries past their retention that no lake and no minute still needs: the oldest, one
        batch."""
        rows = yield self._statement("oldest_history", limit, kept)
        old = [row[0] for row in rows if int(row[1]) < end and row[2]]
        if old:
            yield self._statement("delete_history", old)
        return len(old)


_BATCH = 2_000
_LIMIT = 20_000


class MysqlHistoryOrder(MysqlBase):
    def _stamp_history(self) -> Plan[int]:
        """Stamps what is new, if anything; returns the last stamp."""
        rows = yield self._statement("lock_task", b"settle")
        stamp, done = int(rows[0][0]), 0
        while done < _LIMIT:
            new = yield self._statement("unstamped_history", _BATCH)
            if not new:
                break
            stamp += 1
            yield self._statement("stamp_history", [row[0] for row in new], stamp)
            done += len(new)
            if len(new) < _BATCH:
                break
        if done:
            yield self._statement("save_last_stamp", stamp, b"settle")
        return stamp
