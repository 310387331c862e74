"""Figures per minute: upkeep adds them up from messages and history; minutes() reads them."""

from collections.abc import Iterable, Sequence
from typing import Any

from laneway.engines.minutes import COUNTS, MINUTE, RUNS, SPANS, WAITS, MinuteFigures
from laneway.engines.sqlite.base import SqliteSql
from laneway.engines.times import DAY, micros, moment
from laneway.operations import NO_TIMES, Minute, MinuteFilter
from laneway.plan import Plan, Row

from .counts import NOTED, SqliteKindCounts, live_changes
from .looks import SqliteLooks

_CHUNK = 5000
"""Messages, and history entries, that are counted in one transaction."""
_CHUNKS = 10
KEPT = 14 * DAY
_DELETED = 1000

Group = tuple[int, str | None, str | None]


class SqliteMinutes:
    def __init__(self, sql: SqliteSql, looks: SqliteLooks, kind_counts: SqliteKindCounts) -> None:
        self._sql = sql
        self._looks = looks
        self._kind_counts = kind_counts

    def minutes(self, wanted: MinuteFilter) -> Plan[list[Minute]]:
        step = micros(wanted.step)
        since, until = micros(wanted.since), micros(wanted.until)
        since, until = since - since % step, until + -until % step
        span = max(span for span, length in SPANS.items() if step % length == 0)
        apart = (wanted.by is not None, wanted.by == "kind")
        rows = yield self._sql.read_outside(
            "minutes", span, since, until, wanted.queue, wanted.kind, step, *apart
        )
        last = None if wanted.times else 3 + len(COUNTS)
        groups: dict[Group, Sequence[int]] = {(row[0], row[1], row[2]): row[3:last] for row in rows}
        depths = yield from self._depths(wanted, (since, until), step, groups)
        gaps = yield self._sql.read_outside("history_gaps")
        found = sorted(groups.keys() | depths.keys(), key=lambda g: (g[0], g[1] or "", g[2] or ""))
        return [_minute(g, groups.get(g), depths.get(g), gaps, step) for g in found]

    def _depths(
        self, wanted: MinuteFilter, times: tuple[int, int], step: int, groups: Iterable[Group]
    ) -> Plan[dict[Group, "_Depth"]]:
        """Of queues, or of kinds where these are asked for."""
        steps = (step, times[1] - step)
        if wanted.kind is None and wanted.by != "kind":
            rows = yield self._sql.read_outside("depths", *times, wanted.queue, *steps)
            return _last_depths(rows, wanted, step)
        names = wanted.queue, wanted.kind
        rows = yield self._sql.read_outside("kind_depths", *times, *names, *steps)
        # Where kinds were noted, who is not among them had nothing.
        noted = {row[0] - row[0] % step for row in rows}
        nothing: dict[Group, _Depth] = {group: (0, None) for group in groups if group[0] in noted}
        return nothing | _last_depths(rows, wanted, step)

    def fold(self) -> Plan[bool]:
        """Adds up what was published and what ended since the last time. The position and the
        figures change in one transaction, so that each message and each end is counted once,
        whoever runs upkeep and wherever it stops. What is counted is read before, without a lock.
        Answers whether nothing was left.
        """
        everything = False
        for _ in range(_CHUNKS):
            rows = yield self._sql.read_outside("fold_position")
            message_id, history_id, last_message, last_history, _ = rows[0]
            if message_id >= last_message and history_id >= last_history:
                return True
            figures = MinuteFigures()
            ended = yield self._sql.read_outside("ended_since", history_id, _CHUNK)
            figures.add_ended(row[1:] for row in ended)
            to_message = min(message_id + _CHUNK, last_message)
            published = yield self._sql.read_outside("published_between", message_id, to_message)
            figures.add_published(published)
            to_history = ended[-1][0] if ended else history_id
            moved = yield self._sql.statement(
                "move_fold", message_id, history_id, to_message, to_history
            )
            if not moved:
                return False
            yield self._sql.many("add_minute", figures.rows())
            yield self._sql.many("add_kind_count", live_changes(ended, published))
            everything = len(ended) < _CHUNK and to_message == last_message
        return everything

    def note_depths(self, folded: bool) -> Plan[None]:
        """Once a minute: how much there was at the end of the last one. A queue or a kind that is
        empty now is noted once more."""
        rows = yield self._sql.read_outside("fold_position")
        noted_to, now = rows[0][-1], self._sql.now()
        minute = now - now % MINUTE
        if noted_to >= minute:
            return
        before = {row[0]: (0, None) for row in (yield self._sql.read_outside("last_depths"))}
        stats = yield from self._looks.read_queues(dead=False)
        depths = before | {
            n.queue: (n.waiting + n.scheduled + n.leased, micros(n.oldest_due)) for n in stats
        }
        if not depths:
            return
        kinds = yield from self._kind_counts.kind_depths(folded)
        if (yield self._sql.statement("note_depths", minute)):
            at = minute - MINUTE
            yield self._sql.many("add_depth", [(at, queue, *n) for queue, n in depths.items()])
            yield self._sql.many("add_kind_depth", [(at, *kind) for kind in kinds or ()])
            yield self._sql.statement("delete_empty_kind_counts", _DELETED)
            yield from self._delete_old(now - KEPT)

    def _delete_old(self, before: int) -> Plan[None]:
        for span in SPANS:
            yield self._sql.statement("delete_old_minutes", span, before, _DELETED)
        yield self._sql.statement("delete_old_depths", before, _DELETED)
        yield self._sql.statement("delete_old_kind_depths", before, _DELETED)
        yield self._sql.statement("delete_old_gaps", before, _DELETED)


_Depth = tuple[int, int | None]


def _last_depths(rows: Iterable[Row], wanted: MinuteFilter, step: int) -> dict[Group, _Depth]:
    """At the last noted minute of each step, added up over queues and kinds unless they are kept
    apart."""
    steps: dict[int, tuple[int, dict[Group, _Depth]]] = {}
    for at, queue, kind, depth, oldest in rows:
        begin = at - at % step
        if begin not in steps or steps[begin][0] != at:
            steps[begin] = (at, {})
        if (queue, kind) == NOTED:
            continue
        noted = steps[begin][1]
        one_queue = queue if wanted.by is not None else wanted.queue
        group = (begin, one_queue, kind if wanted.by == "kind" else wanted.kind)
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
    waits = tuple(figures[WAITS] if figures else ()) or NO_TIMES
    runs = tuple(figures[RUNS] if figures else ()) or NO_TIMES
    n, oldest = (None, None) if depth is None else depth
    exact = not any(begins < at + step and (ends is None or ends >= at) for begins, ends in gaps)
    values: tuple[Any, ...] = (*counts, waits, runs, n, moment(oldest), exact)
    return Minute(moment(at), queue, kind, *values)
