"""Channels: how much they hold, their policies, and why they wait."""

from collections.abc import Iterable

from laneway.engines.channel_pages import matches, page_of, reason_to_wait
from laneway.engines.mysql.base import MysqlSql, data, pair_id, repeatable
from laneway.engines.mysql.channels import policy_of
from laneway.errors import InvalidOption, shown
from laneway.inspection import ChannelFilter, ChannelInfo, ChannelPage
from laneway.model import ChannelStats, Policy
from laneway.plan import Plan, Row

from .looks import ROWS, ChannelFigures, ChannelName, Figures, MysqlLooks, Sizes, name_bytes

_WALK = "id:"
"""How a position begins that is the id of a channel."""
_IDS = 1_000  # in one statement
_PART = 200  # channels that a walk reads at a time


class MysqlChannelList:
    def __init__(self, sql: MysqlSql, looks: MysqlLooks) -> None:
        self._sql = sql
        self._looks = looks

    @repeatable
    def channel_stats(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelStats]]:
        if channel is not None:
            names = yield from self._named(queue, channel)
            figures, exact = yield from self._looks.read_channels(names)
        else:
            sizes = yield from self._looks.sizes(queue)
            exact = sizes.all_small
            if exact:
                figures = yield from self._looks.read_all(sizes.queues)
            else:
                wanted = ChannelFilter(queue)
                figures, _ = yield from self._fullest(sizes, wanted, limit)
        found = [f.stats(name, exact) for name, f in figures.items() if f.holds_anything]
        return sorted(found, key=_fullness)[:limit]

    @repeatable
    def channels(self, wanted: ChannelFilter, limit: int, after: str | None) -> Plan[ChannelPage]:
        """If there are more than a look reads, the first page has the fullest of those that it
        read, and the others follow in the order of their ids."""
        if isinstance(after, str) and after.startswith(_WALK):
            return (yield from self._walk_channels(wanted, limit, _id(after)))
        if wanted.channel is not None:
            names = yield from self._named(wanted.queue, wanted.channel)
            figures, exact = yield from self._looks.read_channels(names)
            infos = yield from self._infos(figures, figures, exact)
            found = [info for info in infos if _is_listed(info)]
            return page_of(found, wanted, limit, after)
        sizes = yield from self._looks.sizes(wanted.queue)
        if sizes.all_whole:
            figures = yield from self._looks.read_all(sizes.queues, policies=True)
            infos = yield from self._infos(figures, figures, True)
            return page_of([info for info in infos if _is_listed(info)], wanted, limit, after)
        figures, exact = yield from self._fullest(sizes, wanted, limit)
        infos = yield from self._infos(figures, figures, exact)
        page = page_of(infos, wanted, limit, after)
        return ChannelPage(page, _WALK, sizes.looked)

    def _fullest(
        self, sizes: Sizes, wanted: ChannelFilter, limit: int
    ) -> Plan[tuple[Figures, bool]]:
        """Of each queue, the fullest of the channels that wait longest."""
        filters = (limit, data(wanted.prefix), wanted.paused, wanted.limited)
        asked = [(queue, ROWS, self._sql.now(), *filters) for queue in sizes.queues]
        rows = (yield self._sql.union("fullest_channels", asked)) if asked else ()
        fullest = sorted(rows, key=lambda row: -int(row[2]))[: min(limit, ROWS)]
        names = [(name_bytes(queue), name_bytes(name)) for queue, name, *_ in fullest]
        return (yield from self._looks.read_channels(names))

    def _walk_channels(self, wanted: ChannelFilter, limit: int, start: bytes) -> Plan[ChannelPage]:
        """Those among the next so many channels that have a row."""
        rows = yield self._sql.statement("next_channels", start, ROWS)
        ids = {(name_bytes(queue), name_bytes(name)): bytes(id) for id, queue, name, *_ in rows}
        names = [name for name in ids if _may_match(name, wanted)]
        found: list[ChannelInfo] = []
        next = _WALK + bytes(rows[-1][0]).hex() if len(rows) == ROWS else None
        for first in range(0, len(names), _PART):
            part = names[first : first + _PART]
            figures, exact = yield from self._looks.read_channels(part)
            infos = yield from self._infos(figures, part, exact)
            found += [info for info in infos if _is_listed(info) and matches(info, wanted)]
            if len(found) >= limit:
                found = found[:limit]
                last = found[-1].queue.encode(), found[-1].channel.encode()
                next = _WALK + ids[last].hex()
                break
        return ChannelPage(found, next, len(rows))

    def _named(self, queue: str | None, channel: str) -> Plan[list[ChannelName]]:
        queues = (yield from self._looks.queue_names()) if queue is None else [queue.encode()]
        return [(name, channel.encode()) for name in queues]

    def _infos(
        self, figures: Figures, names: Iterable[ChannelName], exact: bool
    ) -> Plan[list[ChannelInfo]]:
        wanted = list(names)
        policies: dict[ChannelName, Row] = {}
        for start in range(0, len(wanted), _IDS):
            ids = [pair_id(*name) for name in wanted[start : start + _IDS]]
            rows = yield self._sql.statement("channel_policies", ids, self._sql.now())
            policies |= {(name_bytes(queue), name_bytes(name)): rest for queue, name, *rest in rows}
        nothing = ChannelFigures()
        return [
            _info(figures.get(name, nothing).stats(name, exact), policies.get(name))
            for name in wanted
        ]


def _info(stats: ChannelStats, row: Row | None) -> ChannelInfo:
    *limits, held_up = row or (False,)
    policy = Policy() if row is None else policy_of(*limits)
    why = reason_to_wait(policy, stats, bool(held_up))
    return ChannelInfo(stats.queue, stats.channel, stats, policy, why)


def _is_listed(info: ChannelInfo) -> bool:
    n = info.stats
    return any((n.waiting, n.scheduled, n.leased, n.dead)) or info.policy != Policy()


def _may_match(name: ChannelName, wanted: ChannelFilter) -> bool:
    queue, channel = name
    return data(wanted.queue) in (None, queue) and channel.startswith(data(wanted.prefix) or b"")


def _fullness(n: ChannelStats) -> tuple[int, bytes, bytes]:
    return -n.waiting, n.queue.encode(), n.channel.encode()


def _id(position: str) -> bytes:
    try:
        return bytes.fromhex(position.removeprefix(_WALK))
    except ValueError:
        raise InvalidOption(
            f"{shown(position)} is not a position of this list: pass the next of the last page"
        ) from None
