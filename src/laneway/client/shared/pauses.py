"""Stats and channels, with the queues that are paused."""

from dataclasses import replace

from laneway.contract import Engine
from laneway.inspection import ChannelFilter, ChannelPage
from laneway.model import QueueStats
from laneway.plan import Plan


def stats_with_pauses(engine: Engine) -> Plan[list[QueueStats]]:
    stats = yield from engine.queue_stats()
    paused = yield from _paused_queues(engine, None)
    if not paused:
        return stats
    return [replace(one, paused=True) if one.queue in paused else one for one in stats]


def channels_with_pauses(
    engine: Engine, wanted: ChannelFilter, limit: int, after: str | None
) -> Plan[ChannelPage]:
    page = yield from engine.channels(wanted, limit, after)
    paused = yield from _paused_queues(engine, wanted.queue)
    if paused:
        for place, info in enumerate(page):
            if info.queue in paused:
                page[place] = replace(info, waits_for="queue paused")
    return page


def _paused_queues(engine: Engine, queue: str | None) -> Plan[set[str]]:
    pauses = yield from engine.pauses(queue)
    return {pause.queue for pause in pauses if pause.kind is None}
