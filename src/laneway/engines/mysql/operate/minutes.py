"""The figures by minute: upkeep folds new history entries and new messages into them."""

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from laneway.engines.minutes import OUTCOMES
from laneway.engines.mysql.base import MysqlSql, data, repeatable, text
from laneway.engines.times import DAY, SECOND, micros, moment
from laneway.operations import NO_TIMES, WAIT_BOUNDS, Minute, MinuteFilter
from laneway.plan import Plan, Row

from .looks import MysqlOldest

# Counts published messages, each once, by ranges of their ids.
#
# MySQL does not tell an ordinary user which transactions are open, so a range of ids is never known
# to be complete. Instead an id that was not found is noted as a gap. It belongs to a transaction
# that was rolled back, or to one that is still open: then it appears later, is counted in the
# minute in which it was published, and is a gap no longer. An id is either counted or in a gap,
# never both.

_CHUNK = 5_000
_MAX_CHUNKS = 4
_GAPS = 100
_LATE = 2_000  # late messages that one upkeep counts, and released nodes
_MAX_AGE = DAY


class PublishedSums(Protocol):
    def add_published(self, at: int, queue: bytes, kind: bytes, n: int) -> None: ...


class MysqlPublishedFold:
    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def fold_published(
        self, figures: PublishedSums, start: int, seen: int, full: bool, now: int
    ) -> Plan[int]:
        """Up to what the last upkeep saw, because of what is newer much is not committed yet;
        returns how far it came. Without a ``full`` history messages end without a trace, so what
        is missing is no gap."""
        for _ in range(_MAX_CHUNKS):
            if start >= seen:
                break
            if seen - start > _MAX_CHUNKS * _CHUNK:
                start = yield from self._skip(start, full, now)
            end = min(start + _CHUNK, seen)
            rows = yield self._sql.statement("published_messages", start, end)
            if full and sum(int(row[3]) for row in rows) < end - start:
                rows = yield from self._note_gaps(start, end, now)
            for at, queue, kind, n in rows:
                figures.add_published(int(at), queue, kind, int(n))
            start = end
        yield from self._check_gaps(figures, now)
        return start

    def _skip(self, start: int, full: bool, now: int) -> Plan[int]:
        """Up to the next message: between two lives of the server lie numbers without any."""
        ((next_id,),) = yield self._sql.statement("next_message_id", start)
        if next_id is None or int(next_id) <= start + 1:
            return start
        if full:
            gap = (start + 1, int(next_id) - 1, now, now + SECOND)
            yield from self._sql.insert("add_gaps", [gap])
        return int(next_id) - 1

    def _note_gaps(self, start: int, end: int, now: int) -> Plan[list[Row]]:
        """Counts again, with what is missing in the same snapshot: a message that is committed
        between two statements would be neither counted nor missing."""
        ((step,),) = yield self._sql.statement("id_step")
        rows = yield self._sql.statement("published_and_missing", start, end, int(step))
        missing = [(int(row[0]), int(row[3])) for row in rows if row[1] is None]
        yield from self._sql.insert("add_gaps", [(*gap, now, now + SECOND) for gap in missing])
        return [row for row in rows if row[1] is not None]

    def _check_gaps(self, figures: PublishedSums, now: int) -> Plan[None]:
        """Later each time, in proportion to the age of the gap: a transaction that was open for a
        minute is counted five minutes after it began at the latest. Where as many appeared as one
        look reads, the next upkeep goes on, whatever the age. Nodes that were released are looked
        up by their ids."""
        rows = yield self._sql.statement("gaps_to_check", now, _GAPS, _LATE)
        gaps = sorted(Gap(*map(int, row)) for row in rows if row[1])
        late: dict[int, Row] = {}
        again: dict[int, int | None] = {}
        if gaps:
            most = _LATE // len(gaps)
            ranges = [(gap.first, gap.last, most) for gap in gaps]
            late |= {
                int(row[0]): row for row in (yield self._sql.union("published_in_gap", ranges))
            }
            ids = sorted(late)
            again = {gap.first: gap.again(now, len(gap.among(ids)) >= most) for gap in gaps}
        if numbers := _some([(int(row[0]), int(row[2])) for row in rows if not row[1]]):
            nodes = yield from self._released(numbers)
            gaps = sorted({*gaps, *(yield from self._gaps_of(sorted(nodes), gaps))})
            late |= {id: nodes[id] for gap in gaps for id in gap.among(sorted(nodes))}
        for _, at, queue, kind in late.values():
            figures.add_published(int(at), queue, kind, 1)
        if gaps:
            yield self._sql.statement("delete_gaps", [gap.first for gap in gaps])
            ids = sorted(late)
            left = [
                (*part, gap.noted_at, check_at)
                for gap in gaps
                if (check_at := again.get(gap.first, gap.check_at)) is not None
                for part in gap.without(ids)
            ]
            yield from self._sql.insert("add_gaps", left)

    def _released(self, numbers: Sequence[int]) -> Plan[dict[int, Row]]:
        """Messages that nodes have become."""
        rows = yield self._sql.statement("released_nodes", numbers)
        ids = sorted({id for row in rows for id in json.loads(row[0])})
        yield self._sql.statement("delete_released_nodes", numbers)
        return {int(row[0]): row for row in (yield self._sql.statement("published_nodes", ids))}

    def _gaps_of(self, ids: Sequence[int], known: Sequence["Gap"]) -> Plan[set["Gap"]]:
        """The gaps that these are in, except for those that are known. A statement looks up some:
        the server opens the table for each of them."""
        had = {id for gap in known for id in gap.among(ids)}
        left = [id for id in ids if id not in had]
        found: set[Gap] = set()
        while left:
            asked = left[:_GAPS]
            rows = yield self._sql.union("gap_before", [(id,) for id in asked])
            gaps = {Gap(*map(int, row)) for row in rows}
            found |= {gap for gap in gaps if gap.among(left)}
            last = max(asked[-1], max((gap.last for gap in gaps), default=0))
            left = left[bisect_right(left, last) :]
        return found


class Gap(NamedTuple):
    """Ids from the first to the last: those that are there are not counted."""

    first: int
    last: int
    noted_at: int
    check_at: int

    def among(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of these, which are in order, that are in it."""
        return ids[bisect_left(ids, self.first) : bisect_right(ids, self.last)]

    def again(self, now: int, more: bool) -> int | None:
        """When to look at it again; None: not any more."""
        age = now - self.noted_at
        if more:
            return now
        return now + max(4 * age, SECOND) if age < _MAX_AGE else None

    def without(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """The parts that are left without these ids, which are in order."""
        parts, start = [], self.first
        for id in self.among(ids):
            if id > start:
                parts.append((start, id - 1))
            start = id + 1
        if start <= self.last:
            parts.append((start, self.last))
        return parts


def _some(rows: Iterable[tuple[int, int]]) -> list[int]:
    """Numbers of the first of these rows, until they have enough nodes for one upkeep."""
    numbers, nodes = [], 0
    for number, n in rows:
        if nodes >= _LATE:
            break
        numbers.append(number)
        nodes += n
    return numbers


MINUTE = 60_000_000
SPANS = (1, 60)
"""Figures are kept by minute and by hour."""
KEPT_DAYS = 14

COUNTS = ("published", "started", *OUTCOMES, "dead")
"""Columns of a minute, before those of times."""
_COLUMNS = {name.encode(): column for column, name in enumerate(COUNTS)}
_BOUNDS = [round(bound * 1_000_000) for bound in WAIT_BOUNDS]
_BUCKETS = len(_BOUNDS) + 1
_FIRST_WAIT = len(COUNTS)
_FIRST_RUN = _FIRST_WAIT + _BUCKETS
_WIDTH = _FIRST_RUN + _BUCKETS
# What an end means for the number of messages that are live, and of dead letters.
_LIVE = {b"completed": -1, b"cancelled": -1, b"lapsed": -1, b"redriven": 1}
_DEAD = {b"redriven": -1, b"discarded": -1}


class FoldState(NamedTuple):
    """The columns of fold_state."""

    settled: int
    history_id: int
    message_id: int
    seen: int
    stamp: int
    seen_at: int
    known: int


class FoldedFigures:
    """What a fold adds: to rows of minutes and hours, and to the counts by kind."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[int, bytes, bytes], list[int]] = defaultdict(lambda: [0] * _WIDTH)
        self._kinds: dict[tuple[bytes, bytes], list[int]] = defaultdict(lambda: [0, 0])

    def add_published(self, at: int, queue: bytes, kind: bytes, n: int) -> None:
        self._minutes[at, queue, kind][0] += n
        self._kinds[queue, kind][0] += n

    def add_ended(self, row: Row) -> None:
        """From a row of fold_history."""
        ended, claimed, queue, kind, outcome, dead, wait, run, n = row
        n, outcome = int(n), bytes(outcome)
        figures = self._minutes[int(ended), queue, kind]
        if (column := _COLUMNS.get(outcome)) is not None:
            figures[column] += n
        if claimed is not None:
            self._minutes[int(claimed), queue, kind][_COLUMNS[b"started"]] += n
            figures[_FIRST_WAIT + int(wait)] += n
            figures[_FIRST_RUN + int(run)] += n
        live, letters = _LIVE.get(outcome, 0), _DEAD.get(outcome, 0)
        if dead:
            figures[_COLUMNS[b"dead"]] += n
            live, letters = live - 1, letters + 1
        counts = self._kinds[queue, kind]
        counts[0] += live * n
        counts[1] += letters * n

    def minute_rows(self, partial: bool) -> list[Row]:
        sums: dict[tuple[int, int, bytes, bytes], list[int]] = {}
        for (at, queue, kind), figures in self._minutes.items():
            for span in SPANS:
                key = span, at // span * span, queue, kind
                before = sums.get(key, [0] * _WIDTH)
                sums[key] = [a + b for a, b in zip(before, figures, strict=True)]
        return [(*key, partial, *figures) for key, figures in sorted(sums.items())]

    def kind_rows(self) -> list[Row]:
        return [(*key, *counts) for key, counts in sorted(self._kinds.items()) if any(counts)]


class MysqlFold:
    """The fold, a part of upkeep: adds new history entries and new messages to the figures by
    minute.

    Invariant: the positions move in the transaction that adds what lies before them, and one
    session at a time does it, so everything is counted exactly once. History entries are read in
    the order of their stamps, in which none appears late."""

    def __init__(self, sql: MysqlSql, published: MysqlPublishedFold, oldest: MysqlOldest) -> None:
        self._sql = sql
        self._published = published
        self._oldest = oldest

    def fold(self, now: int, history: bytes) -> Plan[None]:
        """Without a full history, what has ended between two folds is unknown: the minutes are
        marked, and the counts by kind are not used until they were counted anew."""
        seen = yield self._sql.statement("fold_state")
        rows = yield self._sql.statement("lock_fold_state")
        if tuple(seen[0]) != tuple(rows[0]):
            return  # a caller's transaction with an old snapshot, in which the newest is missing
        old = FoldState(*map(int, rows[0]))
        figures, full = FoldedFigures(), history == b"all"
        ids = old.message_id, old.seen
        message_id = yield from self._published.fold_published(figures, *ids, full, now)
        position = yield from self._fold_history(figures, old)
        yield from self._sql.insert("add_minutes", figures.minute_rows(not full))
        yield from self._sql.insert("add_kind_counts", figures.kind_rows())
        if not full:
            for span in SPANS:
                first = old.seen_at // MINUTE // span * span
                yield self._sql.statement("mark_partial", span, first)
        known = bool(old.known) and full
        if full and not known:
            known = yield from self._recount(*position, message_id)
        caught_up = message_id >= old.seen and position[0] > old.stamp
        minute = old.seen_at // MINUTE
        noted = None
        if now // MINUTE > minute:
            if known and caught_up:
                yield from self._note_depth(minute)
                noted = minute
            yield from self._delete_old_minutes(now // MINUTE)
        as_of = old.seen_at if caught_up else None
        yield self._sql.statement("save_fold_state", *position, message_id, known, as_of, noted)

    def save_fold_end(self, stamp: int, now: int) -> Plan[None]:
        """At the end of upkeep: how far the next one counts. A statement of its own reads the last
        id, because within an update it would wait for open transactions. While nothing happens, a
        row a minute is written."""
        ((last,),) = yield self._sql.statement("last_message_id")
        ((*_, seen, old_stamp, seen_at, _),) = yield self._sql.statement("fold_state")
        same = int(last) <= int(seen) and stamp == int(old_stamp)
        if not same or now // MINUTE != int(seen_at) // MINUTE:
            yield self._sql.statement("save_fold_end", stamp, int(last), now)

    def _fold_history(self, figures: FoldedFigures, old: FoldState) -> Plan[tuple[int, int]]:
        """The new position: at the end it is the stamp after the last one."""
        start = old.settled, old.history_id
        for _ in range(_MAX_CHUNKS):
            rows = yield self._sql.statement("fold_end", *start, old.stamp, _CHUNK)
            if not rows:
                return max(start, (old.stamp + 1, 0))
            end = int(rows[0][0]), int(rows[0][1])
            for row in (yield self._sql.statement("fold_history", *start, *end, _BOUNDS)):
                figures.add_ended(row)
            start = end
        return start

    def _recount(self, settled: int, history_id: int, message_id: int) -> Plan[bool]:
        """Counts the messages themselves, if they are few."""
        sizes = yield self._sql.statement("recount_size", settled, history_id, _CHUNK)
        if max(map(int, sizes[0])) >= _CHUNK:
            return False
        rows = yield self._sql.statement("recount_kinds", settled, history_id, message_id)
        yield self._sql.statement("delete_kind_counts")
        counts = [(row[0], row[1], int(row[2]), int(row[3])) for row in rows]
        yield from self._sql.insert("add_kind_counts", counts)
        return True

    def _note_depth(self, minute: int) -> Plan[None]:
        """What is left at the end of a minute, once in each."""
        yield self._sql.statement("delete_empty_kind_counts")
        oldest = yield from self._oldest.oldest_by_queue()
        for span in SPANS:
            at = minute // span * span
            yield self._sql.statement("note_depth", span, at)
            yield self._sql.statement("note_depth_of_all", span, at)
            for queue, due in oldest.items():
                yield self._sql.statement("note_oldest", span, at, queue, due)

    def _delete_old_minutes(self, minute: int) -> Plan[None]:
        for span in SPANS:
            end = minute - KEPT_DAYS * DAY // MINUTE
            yield self._sql.statement("delete_old_minutes", span, end, _CHUNK)


_TIMES = 3 + len(COUNTS)


class MysqlMinutes:
    """The figures by minute that upkeep has counted."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def minutes(self, wanted: MinuteFilter) -> Plan[list[Minute]]:
        """Reads hours where that is the same."""
        step = micros(wanted.step) // MINUTE
        span = max(span for span in SPANS if step % span == 0)
        since, until = micros(wanted.since) // MINUTE, -(-micros(wanted.until) // MINUTE)
        begin, end = since // step * step, -(-until // step) * step
        names = data(wanted.queue), data(wanted.kind)
        apart = wanted.by is not None, wanted.by == "kind"
        params = (span, begin, end, step, *names, *apart)
        if wanted.times:
            rows = yield self._sql.statement("minutes", *params)
        else:
            rows = yield self._sql.statement("minutes_without_times", *params)
        return [_minute(row, wanted) for row in rows]


def _minute(row: Row, wanted: MinuteFilter) -> Minute:
    at, queue, kind = row[:3]
    counts = dict(zip(COUNTS, map(int, row[3:_TIMES]), strict=True))
    times = tuple(map(int, row[_TIMES:-3])) or NO_TIMES * 2
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
