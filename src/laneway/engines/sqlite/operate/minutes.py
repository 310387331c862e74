"""Figures per minute: upkeep adds them up from messages and history; minutes() reads them."""

from collections.abc import Iterable, Sequence
from typing import Any

from laneway.engines.minute_figures import (
    COUNTS,
    MINUTE,
    RUNS,
    SPANS,
    WAITS,
    MinuteFigures,
)
from laneway.engines.times import DAY, micros, moment
from laneway.operations import NO_TIMES, Minute, MinuteFilter
from laneway.plan import Plan, Row

from .counts import SqliteCounts

_CHUNK = 5000
"""Messages, and history entries, that are counted in one transaction."""
_CHUNKS = 10
KEPT = 14 * DAY
_DELETED = 1000

Group = tuple[int, str | None, str | None]


class SqliteMinutes(SqliteCounts):
    def minutes(self, wanted: MinuteFilter) -> Plan[list[Minute]]:
        step = micros(wanted.step)
        since, until = micros(wanted.since), micros(wanted.until)
        since, until = since - since % step, until + -until % step
        span = max(span for span, length in SPANS.items() if step % length == 0)
        apart = (wanted.by is not None, wanted.by == "kind")
        rows = yield self._read_outside(
            "minutes", span, since, until, wanted.queue, wanted.kind, step, *apart
        )
        groups: dict[Group, Sequence[int]] = {(row[0], row[1], row[2]): row[3:] for row in rows}
        depths: dict[Group, _Depth] = {}
        if wanted.kind is None and wanted.by != "kind":
            rows = yield self._read_outside(
                "depths", since, until, wanted.queue, step, until - step
            )
            depths = _last_depths(rows, wanted, step)
        gaps = yield self._read_outside("history_gaps")
        found = sorted(groups.keys() | depths.keys(), key=lambda g: (g[0], g[1] or "", g[2] or ""))
        return [_minute(g, groups.get(g), depths.get(g), gaps, step) for g in found]

    def _fold(self) -> Plan[None]:
        """Adds up what was published and what ended since the last time. The position and the
        figures change in one transaction, so that each message and each end is counted once,
        whoever runs upkeep and wherever it stops. What is counted is read before, without a lock.
        """
        for _ in range(_CHUNKS):
            rows = yield self._read_outside("fold_position")
            message_id, history_id, last_message, last_history, _ = rows[0]
            if message_id >= last_message and history_id >= last_history:
                return
            figures = MinuteFigures()
            ended = yield self._read_outside("ended_since", history_id, _CHUNK)
            figures.add_ended(row[1:] for row in ended)
            to_message = min(message_id + _CHUNK, last_message)
            figures.add_published(
                (yield self._read_outside("published_between", message_id, to_message))
            )
            to_history = ended[-1][0] if ended else history_id
            moved = yield self._statement(
                "move_fold", message_id, history_id, to_message, to_history
            )
            if not moved:
                return
            yield self._many("add_minute", figures.rows())

    def _note_depths(self) -> Plan[None]:
        """Once a minute: how much there was at the end of the last one. A queue that is empty now
        is noted once more."""
        rows = yield self._read_outside("fold_position")
        noted_to, now = rows[0][-1], self._now()
        minute = now - now % MINUTE
        if noted_to >= minute:
            return
        before = {row[0]: (0, None) for row in (yield self._read_outside("last_depths"))}
        stats = yield from self._queue_stats(dead=False)
        depths = before | {
            n.queue: (n.waiting + n.scheduled + n.leased, micros(n.oldest_due)) for n in stats
        }
        if not depths:
            return
        if (yield self._statement("note_depths", minute)):
            yield self._many(
                "add_depth", [(minute - MINUTE, queue, *n) for queue, n in depths.items()]
            )
            yield from self._delete_old(now - KEPT)

    def _delete_old(self, before: int) -> Plan[None]:
        for span in SPANS:
            yield self._statement("delete_old_minutes", span, before, _DELETED)
        yield self._statement("delete_old_depths", before, _DELETED)
        yield self._statement("delete_old_gaps", before)


_Depth = tuple[int, int | None]


def _last_depths(rows: Iterable[Row], wanted: MinuteFilter, step: int) -> dict[Group, _Depth]:
    """At the last noted minute of each step, added up over queues unless they are kept apart."""
    steps: dict[int, tuple[int, dict[Group, _Depth]]] = {}
    for at, queue, depth, oldest in rows:
        begin = at - at % step
        if begin not in steps or steps[begin][0] != at:
            steps[begin] = (at, {})
        noted = steps[begin][1]
        group = (begin, queue if wanted.by is not None else wanted.queue, None)
        total, first = noted.get(group, (0, None))
        dues = [due for due in (first, oldest) if due is not None]
        noted[group] = (total + depth, min(dues, default=None))
    return {group: depth for _, noted in steps.values() for group, depth in noted.items()}


def _minute(
    group: Group,
    figures: Sequence[int] | None,
    depth: _Depth | None,
    gaps: Iterable[Row],
    step: int,
) -> Minute:
    at, queue, kind = group
    counts = [0] * len(COUNTS) if figures is None else figures[: len(COUNTS)]
    waits = NO_TIMES if figures is None else tuple(figures[WAITS])
    runs = NO_TIMES if figures is None else tuple(figures[RUNS])
    n, oldest = (None, None) if depth is None else depth
    exact = not any(begins < at + step and (ends is None or ends >= at) for begins, ends in gaps)
    values: tuple[Any, ...] = (*counts, waits, runs, n, moment(oldest), exact)
    return Minute(moment(at), queue, kind, *values)
