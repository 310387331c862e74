"""Lists of channels: the fullest first where all of them can be read, else page by page by name."""

from collections.abc import Sequence
from json import dumps, loads
from typing import Any

from laneway.engines.channel_pages import matches, page_of, rank, read_rank
from laneway.inspection import ChannelFilter, ChannelInfo, ChannelPage
from laneway.model import ChannelStats, Policy
from laneway.plan import Plan

from .looks import (
    CHANNELS,
    EVERY_NAME,
    Found,
    LeasedChannels,
    NameRange,
    SqliteChannelLook,
    SqliteLooks,
)

_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_START = ("", "")
_PART = 100

Place = tuple[str, str]
"""A queue and a channel: those after it are not listed yet."""


class SqliteChannelList(SqliteLooks):
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
        queues = [wanted.queue] if wanted.queue is not None else (yield from self._queue_names())
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
            leased = yield from self._leased_channels()
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
            ids, all = yield from self._busy_ids(queue, leased, left)
            if idle and wanted.limited is not False:
                rows = yield self._read_outside("limited_channels", queue, left + 1, *names)
                ids = list(dict.fromkeys([*ids, *(row[0] for row in rows)]))
        else:
            rows = yield self._read_outside(source, queue, left + 1, *names)
            ids, all = [row[0] for row in rows], True
        if not all or len(ids) > left:
            return Found([], False)
        channels = yield from self._look(ids)
        if wanted.paused is not True and wanted.limited is not True:
            dead, no_more = yield from self._only_dead(queue, channels, left, names)
            channels, all = channels + dead, no_more
        return Found(channels, all and len(channels) <= left)

    def _fullest(self, queues: Sequence[str], limit: int, idle: bool) -> Plan[ChannelPage]:
        """The fullest, as upkeep counted them last, with the counts of now. The list goes on by
        name."""
        ids: list[int] = []
        for queue in queues:
            left = CHANNELS - len(ids)
            rows = yield self._read_outside("fullest_channels", queue, min(limit, left))
            ids += [row[0] for row in rows]
        channels = yield from self._look(ids)
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
                rows = yield self._read_outside(source, queue, part, begin, names[1])
                looks = {c.id: c for c in (yield from self._look([row[0] for row in rows]))}
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
        now = self._now()
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
