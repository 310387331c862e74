"""What verbs that end leases or messages have in common."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from penstock.plan import Plan

from .names import pair_id
from .posting import WakeRow
from .telling import Telling

HistoryRow = tuple[Any, ...]
"""The columns of history_add.sql."""


class Lost(NamedTuple):
    """What a verb was asked to do with a lease that is no longer its holder's."""

    id: int
    fence: int


class KeyHolder(NamedTuple):
    """A message that ends, and its key."""

    id: int
    queue: bytes
    key: bytes
    window: int | None


class Ending(Telling):
    def _release_keys(self, holders: Sequence[KeyHolder], now: int) -> Plan[None]:
        """Their keys are free, or live on for their window."""
        windows: dict[int | None, list[tuple[bytes, int]]] = defaultdict(list)
        for holder in holders:
            windows[holder.window].append((pair_id(holder.queue, holder.key), holder.id))
        for window, pairs in windows.items():
            ids, messages = zip(*sorted(pairs), strict=True)
            if window is None:
                yield self._say("keys_release", ids, messages)
            else:
                yield self._say("keys_keep", ids, messages, now + window)

    def _free_slots(self, freed: Iterable[tuple[bytes, bytes, bytes]], now: int) -> Plan[None]:
        """Tells limited channels (id, queue, name) that counted leases of theirs ended."""
        counts: dict[tuple[bytes, bytes, bytes], int] = defaultdict(int)
        for lane in freed:
            counts[lane] += 1
        rows: list[WakeRow] = [
            (now, id, now, 0, 0, count, 0, True, queue, name)
            for (id, queue, name), count in counts.items()
        ]
        yield from self._say_rows("wakes", rows)

    def _note_lost(self, lost: Sequence[Lost], verb: str) -> Plan[None]:
        """Who came too late, with what, is noted."""
        if not lost:
            return
        rows = yield self._say("lost", sorted({item.id for item in lost}), self._now())
        now, kept = int(rows[0][5]), bytes(rows[0][6])
        if kept == b"none":
            return
        known = {int(row[0]): row for row in rows[1:]}
        nobody = (None, 0, b"", b"", b"")
        entries = []
        for id, fence in dict.fromkeys(lost):
            _, attempt, queue, channel, kind = known.get(id, nobody)[:5]
            empty = (None, None, None, None)
            where = (False, False, None, queue, channel, kind, None)
            why = (b"stale", verb.encode(), None, None)
            entries.append((id, fence, attempt, *empty, now, None, *where, *why))
        yield from self._say_rows("history_add", entries)

    def _count_dead(self, lanes: Iterable[tuple[bytes, bytes]], sign: int) -> Plan[None]:
        counts: dict[tuple[bytes, bytes], int] = defaultdict(int)
        for lane in lanes:
            counts[lane] += sign
        if counts:
            yield from self._say_rows("dead_counts", [(*lane, n) for lane, n in counts.items()])
