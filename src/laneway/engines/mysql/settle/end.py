"""What the verbs that end leases or messages have in common."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from laneway.engines.mysql.claim.lock import ChannelRef
from laneway.engines.mysql.publish.rows import WakeRow
from laneway.plan import Plan

from .behind import EndedKey, MysqlBehind

HistoryRow = tuple[Any, ...]
"""The columns of add_history."""


class LostLease(NamedTuple):
    """A lease that a verb was called with and that is no longer its holder's."""

    id: int
    fence: int


class MysqlSettleEnd(MysqlBehind):
    def _release_keys(self, ended: Sequence[EndedKey], now: int) -> Plan[None]:
        """The keys are free, or live on for their window. What waited behind a message starts."""
        if any(key.behind is not None for key in ended):
            yield from self._start_behind(ended, now)
            yield from self._give_back_keys(ended)
        windows: dict[int | None, list[tuple[bytes, int]]] = defaultdict(list)
        for key in ended:
            windows[key.window].append((key.key_id, key.id))
        for window, pairs in windows.items():
            ids, messages = zip(*sorted(pairs), strict=True)
            if window is None:
                yield self._statement("release_keys", ids, messages)
            else:
                yield self._statement("keep_keys", ids, messages, now + window)

    def _free_slots(self, freed: Iterable[ChannelRef], now: int) -> Plan[None]:
        """Tells channels with a concurrency limit that counted leases of theirs ended."""
        counts: dict[ChannelRef, int] = defaultdict(int)
        for channel in freed:
            counts[channel] += 1
        rows: list[WakeRow] = [
            (now, id, now, 0, 0, count, 0, True, queue, name)
            for (id, queue, name), count in counts.items()
        ]
        yield from self._insert("add_wakes", rows)

    def _add_stale_history(self, lost: Sequence[LostLease], verb: str) -> Plan[None]:
        """Notes in the history who came too late, and with which verb."""
        if not lost:
            return
        ids = sorted({lease.id for lease in lost})
        rows = yield self._statement("messages_of_lost_leases", ids, self._now())
        now, kept = int(rows[0][5]), bytes(rows[0][6])
        if kept == b"none":
            return
        known = {int(row[0]): row for row in rows[1:]}
        unknown = (None, 0, b"", b"", b"")
        entries = []
        for id, fence in dict.fromkeys(lost):
            _, attempt, queue, channel, kind = known.get(id, unknown)[:5]
            empty = (None, None, None, None)
            where = (False, False, None, queue, channel, kind, None)
            why = (b"stale", verb.encode(), None, None, None)
            entries.append((id, fence, attempt, *empty, now, None, *where, *why))
        yield from self._insert("add_history", entries)

    def _count_dead(self, channels: Iterable[tuple[bytes, bytes]], sign: int) -> Plan[None]:
        """Adds to the dead-letter counts of the channels (queue, name), once for each item."""
        counts: dict[tuple[bytes, bytes], int] = defaultdict(int)
        for channel in channels:
            counts[channel] += sign
        if counts:
            rows = [(*channel, n) for channel, n in counts.items()]
            yield from self._insert("add_dead_counts", rows)
