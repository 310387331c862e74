"""Statistics of queues: exact if a look can read them whole, otherwise as upkeep counted them."""

from collections import defaultdict
from collections.abc import Iterable

from laneway.engines.mysql.base import repeatable
from laneway.engines.mysql.names import text
from laneway.engines.times import moment
from laneway.model import QueueStats
from laneway.plan import Plan

from .looks import ROWS, ChannelFigures, Figures, MysqlLooks, Sizes, name_bytes


class MysqlQueueList(MysqlLooks):
    @repeatable
    def queue_stats(self) -> Plan[list[QueueStats]]:
        sizes = yield from self._sizes(None)
        exact = sizes.small if sizes.leases and sizes.dead else frozenset()
        found = _by_queue((yield from self._read_all(exact)))
        large = [queue for queue in sizes.queues if queue not in exact]
        if large:
            found |= yield from self._large_queues(large, sizes)
        return [found[queue] for queue in sizes.queues if queue in found]

    def _large_queues(self, queues: list[bytes], sizes: Sizes) -> Plan[dict[bytes, QueueStats]]:
        """Messages that have not ended are counted by upkeep. If it does not know, these are at
        least as many as a look sees. How many of them are due later or leased is looked up."""
        asked = [(queue, ROWS, self._now()) for queue in queues]
        summaries = yield self._union("queue_summary", asked)
        later = _numbers((yield self._union("later_wakes", asked)))
        leases = _numbers((yield self._statement("leases_by_queue", ROWS)))
        dead = _numbers((yield self._statement("dead_by_queue", ROWS)))
        kept = {name_bytes(row[0]): row for row in (yield self._statement("kept_counts"))}
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


def _numbers(rows: Iterable[object]) -> dict[bytes, int]:
    return {name_bytes(row[0]): int(row[1]) for row in rows}  # type: ignore[index]
