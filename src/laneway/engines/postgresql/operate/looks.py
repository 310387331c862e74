"""Looks at queues, channels and minutes: each reads a limited number of rows."""

from collections.abc import Sequence

from laneway.engines.channel_pages import (
    matches,
    rank,
    read_position,
    written_position,
)
from laneway.engines.postgresql.base import PostgresqlSql
from laneway.inspection import LOOK, ChannelFilter, ChannelInfo, ChannelPage
from laneway.model import ChannelStats, Policy, QueueStats
from laneway.operations import NO_TIMES, Minute, MinuteFilter
from laneway.plan import Plan, Row

_LOOK_ROWS = LOOK // 40
"""Of wakes and of turns: what is behind a channel costs more than a row."""
_COUNTED = 10_000
"""How many messages are counted for a page of channels by name, all of them together."""
_STATS, _WHY = 8, 17  # columns of a channel: ChannelStats, the policy, the reason
_TIMES = slice(16, 18)


class PostgresqlLooks:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def queue_stats(self) -> Plan[list[QueueStats]]:
        rows = yield self._sql.statement_now("queue_stats", _LOOK_ROWS)
        return [QueueStats(*row) for row in rows]

    def channel_stats(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelStats]]:
        page = yield from self.channels(ChannelFilter(queue, channel), limit, None)
        return [info.stats for info in page if _holds(info.stats)]

    def channels(self, wanted: ChannelFilter, limit: int, after: str | None) -> Plan[ChannelPage]:
        if wanted.channel is not None:
            return (yield from self._one_channel(wanted, wanted.channel))
        last = None if after is None else read_position(after)
        if last is not None and len(last) == 2:
            return (yield from self._by_name(wanted, limit, *last))
        waiting, *names = (None, None, None) if last is None else (-last[0], *last[1:])
        by = (wanted.queue, wanted.prefix, wanted.paused, wanted.limited)
        rows = yield self._sql.statement_now("channels", *by, limit, _LOOK_ROWS, waiting, *names)
        complete, looked = rows[0][:2]
        found = [_channel(row[2:]) for row in rows if row[2] is not None]
        next = written_position(rank(found[limit - 1])) if len(found) > limit else None
        found = found[:limit]
        if not complete:
            next = written_position(("", ""))
            found = yield from self._counted(found)
        if found or complete:
            return ChannelPage(found, next, looked)
        page = yield from self._by_name(wanted, limit, "", "")
        return ChannelPage(page, page.next, looked + page.looked)

    def _one_channel(self, wanted: ChannelFilter, channel: str) -> Plan[ChannelPage]:
        queues = [wanted.queue] if wanted.queue is not None else None
        if queues is None:
            queues = (yield self._sql.statement("queue_names"))[0][0]
        names = [channel] * len(queues)
        rows = yield self._sql.statement_now("channels_named", queues, names, LOOK // 2)
        listed = [_channel(row) for row in rows]
        found = [info for info in listed if _shown(info) and matches(info, wanted)]
        return ChannelPage(sorted(found, key=rank), None, len(queues))

    def _by_name(
        self, wanted: ChannelFilter, limit: int, queue: str, channel: str
    ) -> Plan[ChannelPage]:
        by = (wanted.queue, wanted.prefix, wanted.paused, wanted.limited)
        rows = yield self._sql.statement("channel_names", *by, queue, channel, limit, LOOK)
        queues, names, looked, *last = rows[0]
        next = None if last[0] is None else written_position((last[0], last[1]))
        found = yield from self._named(queues, names)
        return ChannelPage([info for info in found if _shown(info)], next, looked)

    def _counted(self, found: list[ChannelInfo]) -> Plan[list[ChannelInfo]]:
        """What was looked at is not all that there is of a channel: count each by itself."""
        named = yield from self._named(
            [info.queue for info in found], [info.channel for info in found]
        )
        return [max(pair, key=_certain) for pair in zip(named, found, strict=True)]

    def _named(self, queues: Sequence[str], names: Sequence[str]) -> Plan[list[ChannelInfo]]:
        if not names:
            return []
        most = max(20, _COUNTED // len(names))
        rows = yield self._sql.statement_now("channels_named", queues, names, most)
        return [_channel(row) for row in rows]

    def minutes(self, wanted: MinuteFilter) -> Plan[list[Minute]]:
        rows = yield self._sql.statement(
            "minutes",
            wanted.queue,
            wanted.kind,
            wanted.since,
            wanted.until,
            wanted.step,
            wanted.by,
            wanted.times,
        )
        return [_minute(row) for row in rows]


def _channel(row: Row) -> ChannelInfo:
    stats = ChannelStats(*row[:_STATS])
    return ChannelInfo(stats.queue, stats.channel, stats, Policy(*row[_STATS:_WHY]), row[_WHY])


def _minute(row: Row) -> Minute:
    values = list(row)
    values[_TIMES] = [tuple(NO_TIMES if times is None else times) for times in values[_TIMES]]
    return Minute(*values)


def _certain(info: ChannelInfo) -> tuple[bool, int]:
    return info.stats.exact, info.stats.waiting


def _holds(stats: ChannelStats) -> bool:
    return any((stats.waiting, stats.scheduled, stats.leased, stats.dead))


def _shown(info: ChannelInfo) -> bool:
    return _holds(info.stats) or info.policy != Policy()
