"""Looks at queues and channels, which read a limited number of rows whatever there is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from laneway.engines.channel_pages import reason_to_wait
from laneway.engines.sqlite.base import SqliteBase, listed
from laneway.engines.sqlite.channels import read_policy
from laneway.engines.times import SECOND, moment
from laneway.inspection import ChannelInfo
from laneway.model import ChannelStats, Policy, QueueStats
from laneway.plan import Plan, Row

# A channel as a look finds it: its counts, its policy and why it waits.

_POLICY = 12
"""The first column of the policy in a row of look_at_channels."""


class SqliteChannelLook(NamedTuple):
    """A row of look_at_channels, which counted up to ``most``. ``dead`` alone: a channel of which
    only dead letters are left."""

    id: int
    queue: str
    name: str
    waiting: int
    leased: int
    later: int
    due: int | None
    oldest: int | None
    dead: int
    split: int | None
    next_due: int | None
    open_at: int | None
    policy: Policy
    most: int

    @property
    def holds_anything(self) -> bool:
        return bool(self.waiting or self.leased or self.dead)

    def stats(self) -> ChannelStats:
        scheduled, exact = self._scheduled()
        waiting = self.waiting - scheduled
        oldest = moment(self.oldest) if waiting else None
        return ChannelStats(
            self.queue, self.name, waiting, scheduled, self.leased, self.dead, oldest, exact
        )

    def info(self, now: int) -> ChannelInfo:
        stats = self.stats()
        used_up = self.open_at is not None and self.open_at > now
        reason = reason_to_wait(self.policy, stats, used_up)
        return ChannelInfo(self.queue, self.name, stats, self.policy, reason)

    def _scheduled(self) -> tuple[int, bool]:
        """How many are scheduled, and whether that is exact: either these or those that are due
        were counted to the end. If neither was, what upkeep counted last."""
        if self.later < self.most or self.later == self.waiting:
            return self.later, True
        if self.due is not None and self.due < self.most:
            return self.waiting - self.due, True
        return min(self.later if self.split is None else self.split, self.waiting), False


def read_look(row: Row, most: int) -> SqliteChannelLook:
    values: tuple[Any, ...] = (*row[:_POLICY], read_policy(row[_POLICY:]), most)
    return SqliteChannelLook(*values)


def only_dead(queue: str, name: str, dead: int) -> SqliteChannelLook:
    return SqliteChannelLook(
        0, queue, name, 0, 0, 0, None, None, dead, None, None, None, Policy(), 1
    )


CHANNELS = 1000
"""The most channels that a look reads, each with a few index lookups."""
LEASES = 10_000
COUNTED = 100_000
"""The most messages that a look counts to tell the scheduled from those that are due."""
_QUEUES = 10_000
_FRESH = 60 * SECOND
_SAMPLE = 1000

NameRange = tuple[str, str | bytes]
"""From a name on, and before another; SQLite has every blob after all texts."""
EVERY_NAME: NameRange = ("", b"")


class LeasedChannels(NamedTuple):
    """Channels that have leases and nothing that waits, by queue; not all of them if there are too
    many leases to read."""

    by_queue: dict[str, list[int]]
    all: bool


class Found(NamedTuple):
    """What a look has found, and whether that is all."""

    channels: list[SqliteChannelLook]
    all: bool


class SqliteLooks(SqliteBase):
    """Looks at queues and channels, which read a limited number of rows whatever there is.

    Where a look has room for all channels that hold anything, its counts are exact: the channels'
    rows have them. Else it answers what upkeep counted last."""

    def queue_stats(self) -> Plan[list[QueueStats]]:
        return (yield from self._queue_stats(dead=True))

    def _queue_stats(self, *, dead: bool) -> Plan[list[QueueStats]]:
        """The sums over the channels of each queue. Without ``dead``, those that have only dead
        letters may be missing."""
        queues = yield from self._queue_names()
        leased = yield from self._leased_channels()
        left, stats, cut = CHANNELS, [], dict[str, list[int]]()
        for queue in queues:
            ids, all = yield from self._busy_ids(queue, leased, left)
            found = Found([], False)
            if all:
                found = yield from self._busy(queue, ids, left, dead)
            if found.all:
                left -= len(found.channels)
                stats.append(_sum(queue, found.channels))
            else:
                cut[queue] = ids
        if cut:
            stats += yield from self._counted(cut)
        return sorted((n for n in stats if n.channels), key=lambda n: n.queue)

    def _queue_names(self) -> Plan[list[str]]:
        rows = yield self._read_outside("queue_names", _QUEUES)
        return [row[0] for row in rows]

    def _leased_channels(self) -> Plan[LeasedChannels]:
        rows = yield self._read_outside("leased_channels", LEASES)
        by_queue: dict[str, list[int]] = {}
        for queue, id, _ in rows:
            if id is not None:
                by_queue.setdefault(queue, []).append(id)
        return LeasedChannels(by_queue, not rows or rows[0][2] < LEASES)

    def _busy(self, queue: str, ids: Sequence[int], left: int, dead: bool) -> Plan[Found]:
        """Channels that hold anything, up to ``left``."""
        channels, all = (yield from self._look(ids)), True
        if dead:
            dead_only, all = yield from self._only_dead(queue, channels, left)
            channels += dead_only
        return Found(channels, all and len(channels) <= left)

    def _busy_ids(
        self, queue: str, leased: LeasedChannels, left: int
    ) -> Plan[tuple[list[int], bool]]:
        if leased.all:
            rows = yield self._read_outside("ready_channel_ids", queue, left + 1)
            ids = [row[0] for row in rows]
            if len(ids) <= left:
                most = left + 1 - len(ids)
                rows = yield self._read_outside("parked_channel_ids", queue, most)
                ids += [row[0] for row in rows]
            ids = list(dict.fromkeys([*ids, *leased.by_queue.get(queue, ())]))
            return ids[:left], len(ids) <= left
        rows = yield self._read_outside("queue_channels", queue, left + 1)
        return [id for id, busy in rows[:left] if busy], len(rows) <= left

    def _only_dead(
        self,
        queue: str,
        known: Iterable[SqliteChannelLook],
        limit: int,
        names: NameRange = EVERY_NAME,
    ) -> Plan[Found]:
        """Channels that hold nothing but dead letters."""
        seen = {channel.name for channel in known}
        rows = yield self._read_outside("dead_counts", queue, limit + 1, *names)
        channels = [only_dead(queue, name, n) for name, n in rows if n and name not in seen]
        return Found(channels, len(rows) <= limit)

    def _look(self, ids: Sequence[int]) -> Plan[list[SqliteChannelLook]]:
        if not ids:
            return []
        most = COUNTED // len(ids)
        rows = yield self._read_outside("look_at_channels", listed(ids), self._now(), most)
        return [read_look(row, most) for row in rows]

    def _counted(self, cut: Mapping[str, Sequence[int]]) -> Plan[list[QueueStats]]:
        """What upkeep counted last of these queues; if it never has, the sums of the channels that
        were found. If nobody has run upkeep for a while, nobody claims either: what was published
        since is added, judged by the last messages."""
        rows = yield self._read_outside("counted_queues")
        counted = {row[0]: row for row in rows}
        newer: dict[str, int] = {}
        if rows and rows[0][7] < self._now() - _FRESH:
            newer = yield from self._published_since(rows[0][8])
        stats = []
        for queue, ids in cut.items():
            if queue in counted:
                _, waiting, scheduled, leased, dead, channels, due, at, _ = counted[queue]
                waiting += newer.get(queue, 0)
                times = moment(due), False, moment(at)
                stats.append(QueueStats(queue, waiting, scheduled, leased, dead, channels, *times))
            else:
                channels = yield from self._look(ids)
                stats.append(replace(_sum(queue, channels), exact=False))
        return stats

    def _published_since(self, message_id: int) -> Plan[dict[str, int]]:
        rows = yield self._read_outside("published_since", message_id, _SAMPLE)
        looked = sum(row[1] for row in rows)
        if looked < _SAMPLE:
            return {queue: count for queue, count, _ in rows}
        return {queue: count * (last - message_id) // looked for queue, count, last in rows}


def _sum(queue: str, channels: Iterable[SqliteChannelLook]) -> QueueStats:
    """Of channels that hold anything."""
    waiting = scheduled = leased = dead = count = 0
    exact, dues = True, []
    for channel in channels:
        if not channel.holds_anything:
            continue
        n = channel.stats()
        waiting, scheduled = waiting + n.waiting, scheduled + n.scheduled
        leased, dead, count = leased + n.leased, dead + n.dead, count + 1
        exact = exact and n.exact
        if n.oldest_due is not None:
            dues.append(n.oldest_due)
    oldest = min(dues, default=None)
    return QueueStats(queue, waiting, scheduled, leased, dead, count, oldest, exact)
