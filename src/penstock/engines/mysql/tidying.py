"""Part of upkeep: what nobody needs any more."""

from collections import defaultdict

from penstock.plan import Plan

from .ending import Ending
from .times import DAY, HOUR


class Tidying(Ending):
    def _settle_strays(self, now: int) -> Plan[int]:
        """Leases that were charged to a channel's new limit while somebody wrote to them. Alive:
        mark them as counted, so that their end frees the slot. Gone: free it now."""
        rows = yield self._say("strays")
        if not rows:
            return 0
        gone = [row for row in rows if not row[5]]
        alive = [(int(row[0]), int(row[1])) for row in rows if row[5]]
        done = [(int(row[0]), int(row[1])) for row in gone]
        if alive:
            held = yield self._say("uncounted_held", alive)
            if held:
                yield self._say("leases_count", [row[0] for row in held])
                done += [(int(row[0]), int(row[1])) for row in held]
        if done:
            yield self._say("strays_drop", done)
        yield from self._free_slots(((bytes(row[2]), row[3], row[4]) for row in gone), now)
        return len(done)

    def _tidy(self, now: int, days: int, limit: int) -> Plan[tuple[int, int]]:
        """How many keys and channels went, and how many entries of the history."""
        done = yield from self._drop_keys(now, limit)
        done += yield from self._drop_channels(limit)
        done += yield from self._drop_mail(now, limit)
        ((counts, fences, oldest),) = yield self._say("crowded", limit)
        if int(counts) >= limit:
            yield from self._add_up_dead(5 * limit)
        if int(fences) >= limit:
            yield from self._drop_fences(10 * limit)
        forgotten = 0
        if oldest is not None and int(oldest) < now - days * DAY:
            forgotten = yield from self._forget(now - days * DAY, limit)
        return done, forgotten

    def _drop_keys(self, now: int, limit: int) -> Plan[int]:
        rows = yield self._say("keys_past", now, limit)
        if not rows:
            return 0
        rows = yield self._say("keys_past_held", sorted(bytes(row[0]) for row in rows), now)
        if rows:
            yield self._say("keys_drop", [row[0] for row in rows])
        return len(rows)

    def _drop_channels(self, limit: int) -> Plan[int]:
        """Removed channels that have drained. The wakes are read before the last look for messages:
        where there are none, those wakes add up to nothing; a publish that commits later brings its
        own."""
        rows = yield self._say("closing", limit)
        if not rows:
            return 0
        rows = yield self._say("closing_held", sorted(bytes(row[0]) for row in rows))
        if not rows:
            return 0
        owned = [bytes(row[0]) for row in rows]
        wakes = yield self._say("closing_wakes", owned)
        full = {bytes(row[0]) for row in (yield self._say("closing_full", owned))}
        empty = [id for id in owned if id not in full]
        news = [row[0] for row in wakes if bytes(row[1]) not in full]
        if news and empty:
            yield self._say("wakes_drop", news)
        if empty:
            yield self._say("channels_drop", empty)
        return len(empty)

    def _drop_mail(self, now: int, limit: int) -> Plan[int]:
        """Of listeners that are gone, and after an hour the listeners: until then, what an open
        transaction writes for them is found."""
        rows = yield self._say("mail_past", now, limit)
        if rows:
            yield self._say("mail_drop", [int(row[0]) for row in rows])
        elif gone := (yield self._say("listeners_past", now - HOUR)):
            yield self._say("listeners_drop", [int(row[0]) for row in gone])
        return len(rows)

    def _add_up_dead(self, most: int) -> Plan[None]:
        rows = yield self._say("dead_counts_read", most)
        sums: dict[tuple[bytes, bytes], int] = defaultdict(int)
        for _, queue, channel, n in rows:
            sums[queue, channel] += int(n)
        yield self._say("dead_counts_drop", [row[0] for row in rows])
        left = [(*lane, n) for lane, n in sums.items() if n]
        if left:
            yield from self._say_rows("dead_counts", left)

    def _drop_fences(self, most: int) -> Plan[None]:
        rows = yield self._say("fences_read", most)
        yield self._say("fences_drop", [row[0] for row in rows])

    def _forget(self, end: int, limit: int) -> Plan[int]:
        """History past its retention that no lake needs, from the left, a batch at a time."""
        rows = yield self._say("history_oldest", limit)
        past = [row[0] for row in rows if int(row[1]) < end and row[2]]
        if past:
            yield self._say("history_drop", past)
        return len(past)
