"""What upkeep counts: queues of many channels, channels in them, and messages of each kind."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop

from laneway.engines.sqlite.base import SqliteSql
from laneway.engines.times import SECOND, micros
from laneway.plan import Plan, Row

from .looks import CHANNELS, COUNTED, SqliteLooks

_PART = 1000
"""Channels that are read by one statement."""
_MOST = 1000
"""A channel of which more are scheduled, and more due, is looked at by itself."""
_FULLEST = 1000
_OLDEST = 10
_AT_ONCE = 0.1
"""Seconds that one upkeep spends on counting, so that nobody waits for it."""
_EVERY = 10 * SECOND
_SHARE = 20
"""A count that took a second is not repeated for so many."""
_TAKEN_FOR = 60 * SECOND


@dataclass(slots=True)
class _QueueCount:
    waiting: int = 0
    scheduled: int = 0
    leased: int = 0
    channels: int = 0
    fullest: list[tuple[int, int]] = field(default_factory=list)
    """Heap of messages that are due, and channel."""
    oldest: list[tuple[int, int]] = field(default_factory=list)
    """Heap of when the first may be due (negative), and channel."""

    def add(self, id: int, waiting: int, scheduled: int, leased: int, due: int | None) -> None:
        self.waiting += waiting - scheduled
        self.scheduled += scheduled
        self.leased += leased
        self.channels += 1
        _push(self.fullest, (waiting - scheduled, id), _FULLEST)
        if due is not None and waiting > scheduled:
            _push(self.oldest, (-due, id), _OLDEST)


@dataclass(slots=True)
class _Counting:
    """A count that has read up to the channel ``done``."""

    began_at: int
    last: int
    message_id: int
    done: int = 0
    seconds: float = 0.0
    queues: dict[str, _QueueCount] = field(default_factory=dict)
    splits: list[tuple[int, int]] = field(default_factory=list)


class SqliteCounts:
    """What upkeep counts where there is too much for a look: queues of many channels, and channels
    in which much is due and much is scheduled.

    All of it is read without a lock, a part at a time, and written at the end."""

    def __init__(self, sql: SqliteSql, looks: SqliteLooks) -> None:
        self._sql = sql
        self._looks = looks

    _counting: _Counting | None = None

    def count_channels(self) -> Plan[None]:
        counting, self._counting = self._counting, None
        counting = counting or (yield from self._begin_count())
        if counting is None:
            return
        began = time.monotonic()
        while counting.done < counting.last and time.monotonic() - began < _AT_ONCE:
            yield from self._count_part(counting)
        counting.seconds += time.monotonic() - began
        if counting.done < counting.last:
            self._counting = counting
        else:
            yield from self._write_counts(counting)

    def _begin_count(self) -> Plan[_Counting | None]:
        now = self._sql.now()
        rows = yield self._sql.read_outside("count_needed", now, CHANNELS, COUNTED)
        needed, last, message_id = rows[0]
        if not needed or not (yield self._sql.statement("take_count", now, now + _TAKEN_FOR)):
            return None
        return _Counting(now, last or 0, message_id)

    def _count_part(self, counting: _Counting) -> Plan[None]:
        to, now = min(counting.done + _PART, counting.last), self._sql.now()
        rows = yield self._sql.read_outside("count_channels", counting.done, to, now, _MOST)
        for id, queue, waiting, leased, due, later in rows:
            if _MOST <= later < waiting:
                later = yield from self._scheduled(id, now, counting)
            count = counting.queues.setdefault(queue, _QueueCount())
            count.add(id, waiting, min(later, waiting), leased, due)
        counting.done = to

    def _scheduled(self, id: int, now: int, counting: _Counting) -> Plan[int]:
        """Of a channel in which much is scheduled."""
        for channel in (yield from self._looks.look([id])):
            stats = channel.stats()
            if stats.exact:
                return stats.scheduled
        rows = yield self._sql.read_outside("count_scheduled", id, now)
        counting.splits.append((id, rows[0][0]))
        return int(rows[0][0])

    def _write_counts(self, counting: _Counting) -> Plan[None]:
        dead = {row[0]: row[1:] for row in (yield self._sql.read_outside("sum_dead_counts"))}
        rows = []
        for queue in sorted(counting.queues.keys() | dead.keys()):
            n = counting.queues.get(queue, _QueueCount())
            letters, channels = dead.get(queue, (0, 0))
            due = yield from self._oldest_due(n)
            sums = (n.waiting, n.scheduled, n.leased, letters, max(n.channels, channels), due)
            rows.append((queue, *sums, counting.began_at, counting.message_id))
        next_at = self._sql.now() + max(_EVERY, round(counting.seconds * _SHARE * SECOND))
        yield self._sql.statement("finish_count", next_at)
        yield self._sql.statement("clear_queue_counts")
        yield self._sql.many("add_queue_count", rows)
        yield self._sql.statement("clear_fullest")
        yield self._sql.many("add_fullest", _fullest(counting))
        yield self._sql.statement("clear_split_counts")
        yield self._sql.many("add_split_count", counting.splits)

    def _oldest_due(self, count: _QueueCount) -> Plan[int | None]:
        """A channel knows a time before which nothing is due; the first of these are looked at."""
        channels = yield from self._looks.look([id for _, id in count.oldest])
        dues = [micros(channel.stats().oldest_due) for channel in channels]
        return min((due for due in dues if due is not None), default=None)


def _push(heap: list[tuple[int, int]], item: tuple[int, int], most: int) -> None:
    if len(heap) < most:
        heappush(heap, item)
    else:
        heappushpop(heap, item)


def _fullest(counting: _Counting) -> Sequence[Row]:
    """Of all queues, if a look cannot read their channels itself."""
    counts = counting.queues
    if sum(count.channels for count in counts.values()) <= CHANNELS:
        return []
    most = max(100, 10 * _FULLEST // len(counts))
    return [
        (queue, place, id)
        for queue, count in counts.items()
        for place, (_, id) in enumerate(sorted(count.fullest, reverse=True)[:most])
    ]


_MOST_RECOUNTED = 50_000
"""Messages that are counted anew at once, after a time in which the history missed ends."""
_ENDS = ("completed", "cancelled", "lapsed")

Kind = tuple[str, str]
NOTED: Kind = ("", "")
"""The queue and kind of the row that says that a minute was noted."""


def live_changes(ended: Iterable[Row], published: Iterable[Row]) -> list[tuple[str, str, int]]:
    """Of rows of ``ended_since`` and ``published_between``: queue, kind, and how many more have not
    ended."""
    changes: Counter[Kind] = Counter()
    for _, queue, kind, outcome, dead, *_ in ended:
        if dead or outcome in _ENDS:
            changes[queue, kind] -= 1
        elif outcome == "redriven":
            changes[queue, kind] += 1
    for _, queue, kind, count in published:
        changes[queue, kind] += count
    return [(*names, change) for names, change in sorted(changes.items()) if change]


class SqliteKindCounts:
    """How many messages of each kind have not ended: counted with the minutes, noted once a
    minute."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def recount_kinds(self) -> Plan[None]:
        """After a time without a full history, once it is kept again and if there are not too many
        messages. Read without a lock: if something was folded meanwhile, the next upkeep does it.
        """
        if not (yield self._sql.read_outside("recount_needed", _MOST_RECOUNTED))[0][0]:
            return
        rows = yield self._sql.read_outside("recount_kinds")
        if (yield self._sql.statement("take_recount", *rows[0][:3])):
            yield self._sql.statement("clear_kind_counts")
            counts = [row[3:] for row in rows if row[3] is not None and row[5]]
            yield self._sql.many("add_kind_count", counts)

    def kind_depths(self, folded: bool) -> Plan[list[tuple[str, str, int]] | None]:
        """By queue and kind; None if they are not known. ``folded``: whether this upkeep has
        counted all that there was."""
        rows = yield self._sql.read_outside("kind_counts")
        known, nothing_new = rows[0][:2]
        if not known or not (folded or nothing_new):
            return None
        kinds = [(queue, kind, live) for _, _, queue, kind, live in rows]
        return [(*NOTED, 0), *(kind for kind in kinds if kind[0] is not None)]
