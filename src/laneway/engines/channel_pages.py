"""Pages of channels, where all of them were read."""

from collections.abc import Iterable
from contextlib import suppress
from json import dumps, loads

from laneway.errors import InvalidOption, shown
from laneway.inspection import ChannelFilter, ChannelInfo, ChannelPage, WaitsFor
from laneway.model import ChannelStats, Policy

Rank = tuple[int, str, str]
"""The fullest first, then by name."""
Position = Rank | tuple[str, str]
"""After which channel to go on: in the order of ranks, or of names."""


def rank(info: ChannelInfo) -> Rank:
    return -info.stats.waiting, info.queue, info.channel


def page_of(
    found: Iterable[ChannelInfo], wanted: ChannelFilter, limit: int, after: str | None
) -> ChannelPage:
    """Of all that hold anything or have a policy, a page of those that are wanted."""
    last = None if after is None else read_rank(after)
    listed = sorted((info for info in found if matches(info, wanted)), key=rank)
    rest = [info for info in listed if last is None or rank(info) > last]
    next = written_position(rank(rest[limit - 1])) if len(rest) > limit else None
    return ChannelPage(rest[:limit], next, len(listed))


def matches(info: ChannelInfo, wanted: ChannelFilter) -> bool:
    return (
        wanted.queue in (None, info.queue)
        and wanted.channel in (None, info.channel)
        and (wanted.prefix is None or info.channel.startswith(wanted.prefix))
        and wanted.paused in (None, info.policy.paused)
        and wanted.limited in (None, info.policy != Policy())
    )


def reason_to_wait(policy: Policy, stats: ChannelStats, rate_is_used_up: bool) -> WaitsFor | None:
    """Why a channel starts nothing at the moment, apart from its queue."""
    if policy.paused:
        return "throttled" if policy.throttled else "paused"
    if policy.concurrency is not None and stats.leased >= policy.concurrency:
        return "concurrency"
    if policy.rate is not None and rate_is_used_up:
        return "rate"
    return "closing" if policy.closing else None


def written_position(last: Position) -> str:
    """For ChannelPage.next."""
    return dumps(last)


def read_position(position: object) -> Position:
    read: object = None
    if isinstance(position, str):
        with suppress(ValueError):
            read = loads(position)
    match read:
        case [int(waiting), str(queue), str(channel)]:
            return waiting, queue, channel
        case [str(queue), str(channel)]:
            return queue, channel
    raise InvalidOption(
        f"{shown(position)} is not a position of this list: pass the next of the last page"
    )


def read_rank(position: object) -> Rank:
    read = read_position(position)
    return read if len(read) == 3 else (1, *read)
