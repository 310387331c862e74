"""Bounded looks at what waits: so many rows of each table and no more, however many there are.

First it is counted, up to a limit, how many rows there are. If that is all, they are read, and
the result is exact. If there are more, only those that wait longest are read.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from laneway.engines.mysql.base import MysqlSql, pair_id, repeatable, text
from laneway.engines.times import moment
from laneway.model import ChannelStats, QueueStats
from laneway.plan import Plan, Row

ROWS = 400
"""The most rows of a table that a look reads. They are found through indexes and grouped in
temporary tables, so many more would take longer than a look may."""
LEASES = 1_000
"""Of a look that only counts them."""

ChannelName = tuple[bytes, bytes]
"""Queue and name."""


class ChannelFigures:
    """How many messages of a channel are in which state, as far as was looked."""

    __slots__ = ("dead", "leased", "oldest", "scheduled", "waiting")

    def __init__(self) -> None:
        self.waiting = self.scheduled = self.leased = self.dead = 0
        self.oldest: int | None = None

    def add(self, row: Row) -> None:
        _, _, waiting, scheduled, leased, dead, oldest, *_ = row
        self.waiting += int(waiting)
        self.scheduled += int(scheduled)
        self.leased += int(leased)
        self.dead += int(dead)
        if oldest is not None:
            self.oldest = int(oldest) if self.oldest is None else min(self.oldest, int(oldest))

    @property
    def holds_anything(self) -> bool:
        return any((self.waiting > 0, self.scheduled > 0, self.leased, self.dead))

    def stats(self, name: ChannelName, exact: bool) -> ChannelStats:
        waiting, scheduled = max(self.waiting, 0), max(self.scheduled, 0)
        oldest = moment(self.oldest) if waiting else None
        queue, channel = (text(part) or "" for part in name)
        return ChannelStats(
            queue, channel, waiting, scheduled, self.leased, self.dead, oldest, exact
        )


class Sizes(NamedTuple):
    """Which queues can be read whole, also with the channels that hold nothing (``whole``); and
    whether the tables can that all queues share."""

    queues: Sequence[bytes]
    small: frozenset[bytes]
    whole: frozenset[bytes]
    leases: bool
    dead: bool
    looked: int

    @property
    def all_small(self) -> bool:
        return len(self.small) == len(self.queues) and self.leases and self.dead

    @property
    def all_whole(self) -> bool:
        return self.all_small and len(self.whole) == len(self.queues)


Figures = dict[ChannelName, ChannelFigures]


class MysqlLooks:
    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def queue_names(self) -> Plan[list[bytes]]:
        names: list[bytes] = []
        last = b""
        while True:
            rows = yield self._sql.statement("next_queue", last)
            if rows[0][0] is None:
                return names
            last = name_bytes(rows[0][0])
            names.append(last)

    def sizes(self, queue: str | None) -> Plan[Sizes]:
        names = (yield from self.queue_names()) if queue is None else [queue.encode()]
        ((leases, dead),) = yield self._sql.statement("table_sizes", ROWS)
        rows: Sequence[Row] = ()
        if names:
            rows = yield self._sql.union("queue_sizes", [(name, ROWS) for name in names])
        small = frozenset(name_bytes(row[0]) for row in rows if max(map(int, row[1:4])) < ROWS)
        whole = frozenset(name_bytes(row[0]) for row in rows if int(row[4]) < ROWS)
        looked = int(leases) + int(dead) + sum(int(size) for row in rows for size in row[1:])
        return Sizes(names, small, whole, int(leases) < ROWS, int(dead) < ROWS, looked)

    def read_all(self, queues: Iterable[bytes], *, policies: bool = False) -> Plan[Figures]:
        """Everything in these queues, and with ``policies`` also channels that hold nothing."""
        names = sorted(queues)
        if not names:
            return {}
        now = self._sql.now()
        rows = [*(yield self._sql.union("look_at_ring", [(name,) for name in names]))]
        rows += yield self._sql.union("look_at_wakes", [(name, now) for name in names])
        rows += yield self._sql.union("look_at_dead", [(name,) for name in names])
        rows += yield self._sql.statement("look_at_leases")
        if policies:
            rows += yield self._sql.union("channels_with_policy", [(name,) for name in names])
        return _figures(rows, set(names))

    def read_channels(self, channels: Sequence[ChannelName]) -> Plan[tuple[Figures, bool]]:
        """What these channels hold, and whether that is certain."""
        if not channels:
            return {}, True
        ids = [pair_id(*channel) for channel in channels]
        rows = yield self._sql.statement("look_at_channels", ids, ROWS, self._sql.now())
        ((leases, dead),) = yield self._sql.statement("table_sizes", ROWS)
        counts = yield self._sql.statement("look_at_dead_counts", ROWS)
        exact = max(sum(int(row[7]) for row in rows), int(leases), int(dead)) < ROWS
        wanted = set(channels)
        found = _figures([*rows, *counts], {queue for queue, _ in channels})
        return {name: figures for name, figures in found.items() if name in wanted}, exact


class MysqlOldest:
    def __init__(self, sql: MysqlSql, looks: MysqlLooks) -> None:
        self._sql = sql
        self._looks = looks

    def oldest_by_queue(self) -> Plan[dict[bytes, int]]:
        """When the oldest waiting message of each queue was due, as far as a look sees."""
        names = yield from self._looks.queue_names()
        if not names:
            return {}
        asked = [(name, ROWS, self._sql.now()) for name in names]
        rows = yield self._sql.union("queue_summary", asked)
        return {name_bytes(queue): int(due) for queue, *_, due in rows if due is not None}


def _figures(rows: Iterable[Row], queues: set[bytes]) -> Figures:
    found: Figures = defaultdict(ChannelFigures)
    for row in rows:
        queue, channel, *_ = row
        name = name_bytes(queue), name_bytes(channel)
        if name[0] in queues:
            found[name].add(row)
    return dict(found)


def name_bytes(name: bytes | str) -> bytes:
    return name.encode() if isinstance(name, str) else bytes(name)


class MysqlQueueList:
    """Statistics of queues: exact if a look can read them whole, otherwise as upkeep counted
    them."""

    def __init__(self, sql: MysqlSql, looks: MysqlLooks) -> None:
        self._sql = sql
        self._looks = looks

    @repeatable
    def queue_stats(self) -> Plan[list[QueueStats]]:
        sizes = yield from self._looks.sizes(None)
        exact = sizes.small if sizes.leases and sizes.dead else frozenset()
        found = _by_queue((yield from self._looks.read_all(exact)))
        large = [queue for queue in sizes.queues if queue not in exact]
        if large:
            found |= yield from self._large_queues(large, sizes)
        return [found[queue] for queue in sizes.queues if queue in found]

    def _large_queues(self, queues: list[bytes], sizes: Sizes) -> Plan[dict[bytes, QueueStats]]:
        """Messages that have not ended are counted by upkeep. If it does not know, these are at
        least as many as a look sees. How many of them are due later or leased is looked up."""
        asked = [(queue, ROWS, self._sql.now()) for queue in queues]
        summaries = yield self._sql.union("queue_summary", asked)
        later = _numbers((yield self._sql.union("later_wakes", asked)))
        leases = _numbers((yield self._sql.statement("leases_by_queue", LEASES)))
        dead = _numbers((yield self._sql.statement("dead_by_queue", ROWS)))
        kept = {name_bytes(row[0]): row for row in (yield self._sql.statement("kept_counts"))}
        found = {}
        for row in summaries:
            queue = name_bytes(row[0])
            waiting, scheduled, channels = (int(n or 0) for n in row[1:4])
            scheduled, leased = max(scheduled, later.get(queue, 0)), leases.get(queue, 0)
            as_of = None
            if (known := kept.get(queue)) is not None and known[2] is not None:
                waiting = max(int(known[1]) - scheduled - leased, 0)
                as_of = moment(int(known[2]))
            counts = (waiting, scheduled, leased, max(dead.get(queue, 0), 0), channels)
            if any(counts[:4]):
                oldest = moment(row[4])
                found[queue] = QueueStats(text(queue) or "", *counts, oldest, False, as_of)
        return found


def _by_queue(figures: Figures) -> dict[bytes, QueueStats]:
    channels: dict[bytes, list[ChannelFigures]] = defaultdict(list)
    for (queue, _), channel in figures.items():
        if channel.holds_anything:
            channels[queue].append(channel)
    return {queue: _added_up(queue, those) for queue, those in channels.items()}


def _added_up(queue: bytes, channels: list[ChannelFigures]) -> QueueStats:
    oldest = [c.oldest for c in channels if c.waiting > 0 and c.oldest is not None]
    return QueueStats(
        text(queue) or "",
        sum(max(c.waiting, 0) for c in channels),
        sum(max(c.scheduled, 0) for c in channels),
        sum(c.leased for c in channels),
        sum(c.dead for c in channels),
        len(channels),
        moment(min(oldest, default=None)),
    )


def _numbers(rows: Iterable[Row]) -> dict[bytes, int]:
    return {name_bytes(queue): int(number) for queue, number in rows}
