"""Looks at queues and channels, which read a limited number of rows whatever there is; and lists of
channels, the fullest first where all of them can be read, else page by page by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from json import dumps, loads
from typing import Any, NamedTuple

from laneway.engines.channel_pages import matches, page_of, rank, read_rank, reason_to_wait
from laneway.engines.sqlite.base import SqliteSql, listed
from laneway.engines.sqlite.channels import read_policy
from laneway.engines.times import SECOND, moment
from laneway.inspection import ChannelFilter, ChannelInfo, ChannelPage
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


class SqliteLooks:
    """Looks at queues and channels, which read a limited number of rows whatever there is.

    Where a look has room for all channels that hold anything, its counts are exact: the channels'
    rows have them. Else it answers what upkeep counted last."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def queue_stats(self) -> Plan[list[QueueStats]]:
        return (yield from self.read_queues(dead=True))

    def read_queues(self, *, dead: bool) -> Plan[list[QueueStats]]:
        """The sums over the channels of each queue. Without ``dead``, those that have only dead
        letters may be missing."""
        queues = yield from self.queue_names()
        leased = yield from self.leased_channels()
        left, stats, cut = CHANNELS, [], dict[str, list[int]]()
        for queue in queues:
            ids, all = yield from self.busy_ids(queue, leased, left)
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

    def queue_names(self) -> Plan[list[str]]:
        rows = yield self._sql.read_outside("queue_names", _QUEUES)
        return [row[0] for row in rows]

    def leased_channels(self) -> Plan[LeasedChannels]:
        rows = yield self._sql.read_outside("leased_channels", LEASES)
        by_queue: dict[str, list[int]] = {}
        for queue, id, _ in rows:
            if id is not None:
                by_queue.setdefault(queue, []).append(id)
        return LeasedChannels(by_queue, not rows or rows[0][2] < LEASES)

    def _busy(self, queue: str, ids: Sequence[int], left: int, dead: bool) -> Plan[Found]:
        """Channels that hold anything, up to ``left``."""
        channels, all = (yield from self.look(ids)), True
        if dead:
            dead_only, all = yield from self.only_dead(queue, channels, left)
            channels += dead_only
        return Found(channels, all and len(channels) <= left)

    def busy_ids(
        self, queue: str, leased: LeasedChannels, left: int
    ) -> Plan[tuple[list[int], bool]]:
        if leased.all:
            rows = yield self._sql.read_outside("ready_channel_ids", queue, left + 1)
            ids = [row[0] for row in rows]
            if len(ids) <= left:
                most = left + 1 - len(ids)
                rows = yield self._sql.read_outside("parked_channel_ids", queue, most)
                ids += [row[0] for row in rows]
            ids = list(dict.fromkeys([*ids, *leased.by_queue.get(queue, ())]))
            return ids[:left], len(ids) <= left
        rows = yield self._sql.read_outside("queue_channels", queue, left + 1)
        return [id for id, busy in rows[:left] if busy], len(rows) <= left

    def only_dead(
        self,
        queue: str,
        known: Iterable[SqliteChannelLook],
        limit: int,
        names: NameRange = EVERY_NAME,
    ) -> Plan[Found]:
        """Channels that hold nothing but dead letters."""
        seen = {channel.name for channel in known}
        rows = yield self._sql.read_outside("dead_counts", queue, limit + 1, *names)
        channels = [only_dead(queue, name, n) for name, n in rows if n and name not in seen]
        return Found(channels, len(rows) <= limit)

    def look(self, ids: Sequence[int]) -> Plan[list[SqliteChannelLook]]:
        if not ids:
            return []
        most = COUNTED // len(ids)
        rows = yield self._sql.read_outside("look_at_channels", listed(ids), self._sql.now(), most)
        return [read_look(row, most) for row in rows]

    def _counted(self, cut: Mapping[str, Sequence[int]]) -> Plan[list[QueueStats]]:
        """What upkeep counted last of these queues; if it never has, the sums of the channels that
        were found. If nobody has run upkeep for a while, nobody claims either: what was published
        since is added, judged by the last messages."""
        rows = yield self._sql.read_outside("counted_queues")
        counted = {row[0]: row for row in rows}
        newer: dict[str, int] = {}
        *_, counted_at, last_id = rows[0] if rows else (0, 0)
        if rows and counted_at < self._sql.now() - _FRESH:
            newer = yield from self._published_since(last_id)
        stats = []
        for queue, ids in cut.items():
            if queue in counted:
                _, waiting, scheduled, leased, dead, channels, due, at, _ = counted[queue]
                waiting += newer.get(queue, 0)
                times = moment(due), False, moment(at)
                stats.append(QueueStats(queue, waiting, scheduled, leased, dead, channels, *times))
            else:
                channels = yield from self.look(ids)
                stats.append(replace(_sum(queue, channels), exact=False))
        return stats

    def _published_since(self, message_id: int) -> Plan[dict[str, int]]:
        rows = yield self._sql.read_outside("published_since", message_id, _SAMPLE)
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


_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_START = ("", "")
_PART = 100

Place = tuple[str, str]
"""A queue and a channel: those after it are not listed yet."""


class SqliteChannelList:
    def __init__(self, sql: SqliteSql, looks: SqliteLooks) -> None:
        self._sql = sql
        self._looks = looks

    def channel_stats(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelStats]]:
        page = yield from self._list(ChannelFilter(queue, channel), limit, None, idle=False)
        return [info.stats for info in page]

    def channels(self, wanted: ChannelFilter, limit: int, after: str | None) -> Plan[ChannelPage]:
        return (yield from self._list(wanted, limit, after, idle=True))

    def _list(
        self, wanted: ChannelFilter, limit: int, after: str | None, *, idle: bool
    ) -> Plan[ChannelPage]:
        """``idle``: also those that hold nothing and have a policy. A list that became too long
        between two pages begins again, by name."""
        place = None if after is None else _read_place(after)
        queues = (
            [wanted.queue] if wanted.queue is not None else (yield from self._looks.queue_names())
        )
        if place is None:
            found = yield from self._all(wanted, queues, idle)
            if found.all:
                page = page_of(self._infos(found.channels, idle), wanted, limit, after)
                page.looked = len(found.channels)
                return page
            if after is None and wanted == ChannelFilter(wanted.queue):
                return (yield from self._fullest(queues, limit, idle))
        return (yield from self._by_name(wanted, queues, limit, place or _START, idle))

    def _all(self, wanted: ChannelFilter, queues: Sequence[str], idle: bool) -> Plan[Found]:
        leased = LeasedChannels({}, True)
        if _source(wanted) is None:
            leased = yield from self._looks.leased_channels()
        channels: list[SqliteChannelLook] = []
        for queue in queues:
            left = CHANNELS - len(channels)
            found = yield from self._of_queue(wanted, queue, leased, left, idle)
            channels += found.channels
            if not found.all:
                return Found(channels, False)
        return Found(channels, True)

    def _of_queue(
        self,
        wanted: ChannelFilter,
        queue: str,
        leased: LeasedChannels,
        left: int,
        idle: bool,
    ) -> Plan[Found]:
        names = _range(wanted)
        source = _source(wanted)
        if source is None:
            ids, all = yield from self._looks.busy_ids(queue, leased, left)
            if idle and wanted.limited is not False:
                rows = yield self._sql.read_outside("limited_channels", queue, left + 1, *names)
                ids = list(dict.fromkeys([*ids, *(row[0] for row in rows)]))
        else:
            rows = yield self._sql.read_outside(source, queue, left + 1, *names)
            ids, all = [row[0] for row in rows], True
        if not all or len(ids) > left:
            return Found([], False)
        channels = yield from self._looks.look(ids)
        if wanted.paused is not True and wanted.limited is not True:
            dead, no_more = yield from self._looks.only_dead(queue, channels, left, names)
            channels, all = channels + dead, no_more
        return Found(channels, all and len(channels) <= left)

    def _fullest(self, queues: Sequence[str], limit: int, idle: bool) -> Plan[ChannelPage]:
        """The fullest, as upkeep counted them last, with the counts of now. The list goes on by
        name."""
        ids: list[int] = []
        for queue in queues:
            left = CHANNELS - len(ids)
            rows = yield self._sql.read_outside("fullest_channels", queue, min(limit, left))
            ids += [row[0] for row in rows]
        channels = yield from self._looks.look(ids)
        infos = sorted(self._infos(channels, idle), key=rank)[:limit]
        return ChannelPage(infos, dumps(_START), len(channels))

    def _by_name(
        self,
        wanted: ChannelFilter,
        queues: Sequence[str],
        limit: int,
        place: Place,
        idle: bool,
    ) -> Plan[ChannelPage]:
        source, names = _source(wanted) or "named_channels", _range(wanted)
        found: list[ChannelInfo] = []
        left = CHANNELS
        for queue in queues:
            if queue < place[0]:
                continue
            begin = max(names[0], place[1] + "\0") if queue == place[0] else names[0]
            while True:
                part = min(left, max(limit, _PART))
                rows = yield self._sql.read_outside(source, queue, part, begin, names[1])
                looks = {c.id: c for c in (yield from self._looks.look([row[0] for row in rows]))}
                for id, name in rows:
                    info = self._info(looks.get(id), wanted, idle)
                    found += [info] if info is not None else []
                    left -= 1
                    if len(found) == limit or not left:
                        return ChannelPage(found, dumps((queue, name)), CHANNELS - left)
                if len(rows) < part:
                    break
                begin = rows[-1][1] + "\0"
        return ChannelPage(found, None, CHANNELS - left)

    def _info(
        self, look: SqliteChannelLook | None, wanted: ChannelFilter, idle: bool
    ) -> ChannelInfo | None:
        infos = self._infos([look], idle) if look is not None else []
        return next((info for info in infos if matches(info, wanted)), None)

    def _infos(self, channels: Sequence[SqliteChannelLook], idle: bool) -> list[ChannelInfo]:
        """Of those that hold anything, or if idle ones are wanted, have a policy."""
        now = self._sql.now()
        return [
            channel.info(now)
            for channel in channels
            if channel.holds_anything or (idle and channel.policy != Policy())
        ]


def _source(wanted: ChannelFilter) -> str | None:
    """The statement that finds few enough channels; None: those that hold anything."""
    if wanted.paused:
        return "paused_channels"
    if wanted.limited:
        return "limited_channels"
    if wanted.channel is not None or wanted.prefix:
        return "named_channels"
    return None


def _range(wanted: ChannelFilter) -> NameRange:
    if wanted.channel is not None:
        return wanted.channel, wanted.channel + "\0"
    if wanted.prefix:
        return wanted.prefix, _next_prefix(wanted.prefix)
    return EVERY_NAME


def _next_prefix(prefix: str) -> str | bytes:
    """What comes after all names that begin so."""
    for end in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[end]) + 1
        if code <= _LAST_CHARACTER:
            code = _SURROGATES.stop if code in _SURROGATES else code
            return prefix[:end] + chr(code)
    return EVERY_NAME[1]


def _read_place(after: object) -> Place | None:
    """None if it is a position in a list of all, with the fullest first."""
    try:
        place: Any = loads(after) if isinstance(after, str) else None
    except ValueError:
        place = None
    if isinstance(place, list) and len(place) == 2 and all(isinstance(x, str) for x in place):
        return place[0], place[1]
    read_rank(after)
    return None
