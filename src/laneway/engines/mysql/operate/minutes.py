"""The figures by minute that upkeep has counted."""

from laneway.engines.mysql.base import MysqlBase, repeatable
from laneway.engines.mysql.names import data, text
from laneway.engines.times import micros, moment
from laneway.operations import Minute, MinuteFilter
from laneway.plan import Plan, Row

from .fold import COUNTS, MINUTE, SPANS

_TIMES = 3 + len(COUNTS)


class MysqlMinutes(MysqlBase):
    @repeatable
    def minutes(self, wanted: MinuteFilter) -> Plan[list[Minute]]:
        """Reads hours where that is the same."""
        step = micros(wanted.step) // MINUTE
        span = max(span for span in SPANS if step % span == 0)
        since, until = micros(wanted.since) // MINUTE, -(-micros(wanted.until) // MINUTE)
        begin, end = since // step * step, -(-until // step) * step
        names = data(wanted.queue), data(wanted.kind)
        apart = wanted.by is not None, wanted.by == "kind"
        rows = yield self._statement("minutes", span, begin, end, step, *names, *apart)
        return [_minute(row, wanted) for row in rows]


def _minute(row: Row, wanted: MinuteFilter) -> Minute:
    at, queue, kind = row[:3]
    counts = dict(zip(COUNTS, map(int, row[3:_TIMES]), strict=True))
    times = tuple(map(int, row[_TIMES:-3]))
    depth, oldest, partial = row[-3:]
    return Minute(
        moment(int(at) * MINUTE),
        wanted.queue if queue is None else text(queue),
        wanted.kind if kind is None else text(kind),
        **counts,
        waits=times[: len(times) // 2],
        runs=times[len(times) // 2 :],
        depth=None if depth is None else int(depth),
        oldest_due=moment(oldest),
        exact=not int(partial),
    )
