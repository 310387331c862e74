"""Dead letters: read, group and count them; redrive and discard them, also in bulk operations."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

from laneway.contract import TELL_WITHIN
from laneway.engines.dead_letters import (
    ERROR_START,
    CountedError,
    OpenOperation,
    filter_of,
    grouped,
    looked_at,
    take_letters,
    take_step,
)
from laneway.engines.times import micros, moment
from laneway.inspection import DeadLetterCount, DeadLetterGroups, DeadLetterPage, DeadLetterPosition
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.operations import BulkAction, Operation, OperationOrder, OperationState
from laneway.plan import Plan, Row, Statement

from .append import WakeRow
from .base import MysqlSql, data, pair_id, repeatable, text
from .events import EventRow, MysqlEventOutbox, event_row
from .flows_release import MysqlNodeEnds
from .settle.end import HistoryRow, MysqlSettleEnd, ended_key

LOOK = 3_000
"""Fewer than elsewhere: each row is found through an index, then by its key, and those that are
grouped go through a temporary table."""
COUNT_STEP = 10_000
"""A count that stops somewhere writes each row to a temporary table; passing by rows does not."""
_EARLIEST = -(2**63) + 1

Position = tuple[int | None, int | None]


class MysqlDeadLetterLooks:
    """Dead letters: read, group and count them. No look reads more of them than LOOK."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | DeadLetterPosition | None
    ) -> Plan[DeadLetterPage]:
        start: Position = (micros(after.died_at), after.id) if after else (None, None)
        end = (yield from self._reach(wanted, start)) if wanted.rare else (None, None)
        rows = yield self._of(("dead_letters", "all_dead_letters"), wanted, limit, *start, *end)
        letters = [_letter(row) for row in rows]
        if len(letters) == limit:
            return DeadLetterPage(letters, DeadLetterPosition(letters[-1].died_at, letters[-1].id))
        died_at, letter = end
        if died_at is None or letter is None:
            return DeadLetterPage(letters)
        return DeadLetterPage(letters, DeadLetterPosition(moment(died_at), letter))

    @repeatable
    def dead_letter_groups(self, queue: str | None, limit: int) -> Plan[DeadLetterGroups]:
        if queue is None:
            rows = yield self._sql.statement("all_dead_letter_groups", LOOK, ERROR_START)
        else:
            rows = yield self._sql.statement("dead_letter_groups", data(queue), LOOK, ERROR_START)
        return grouped((_counted(row) for row in rows), limit, LOOK)

    @repeatable
    def count_dead_letters(
        self, wanted: Sequence[int] | DeadLetterFilter, most: int
    ) -> Plan[DeadLetterCount]:
        looked, bound = 0, 0
        if not isinstance(wanted, DeadLetterFilter):
            if not wanted:
                return DeadLetterCount(0)
            ((found,),) = yield self._sql.statement("count_dead_letter_ids", list(wanted), most + 1)
        elif wanted.rare:
            names = ("count_dead_letters_matching", "count_all_dead_letters_matching")
            ((found, looked),) = yield self._of(names, wanted, LOOK + 1)
            found, bound = min(found, LOOK), LOOK
        else:
            found = yield from self._count_within(wanted, most + 1)
        return DeadLetterCount(min(int(found), most), found > most or looked > bound)

    def _count_within(self, wanted: DeadLetterFilter, most: int) -> Plan[int]:
        """From step to step, the oldest first: each row is read once, those of the last step twice.
        What dies meanwhile has not been passed."""
        found, since, until = 0, micros(wanted.since), micros(wanted.until)
        start = (_EARLIEST if since is None else since, -1)
        while most - found > COUNT_STEP:
            names = ("pass_dead_letters", "pass_all_dead_letters")
            rows = yield self._of_queue(names, wanted, *start, COUNT_STEP - 1)
            if not rows or (until is not None and rows[0][0] >= until):
                break
            ((at, id),) = rows
            found, start = found + COUNT_STEP, (int(at), int(id))
        names, rest = ("count_dead_letters", "count_all_dead_letters"), most - found
        rows = yield self._of_queue(names, wanted, *start, until, min(COUNT_STEP, rest))
        return found + int(rows[0][0])

    def dead_letter_ids(self, wanted: DeadLetterFilter, looked: int, *rest: Any) -> Statement:
        return self._of(("dead_letter_ids", "all_dead_letter_ids"), wanted, looked, *rest)

    def _reach(self, wanted: DeadLetterFilter, start: Position) -> Plan[Position]:
        """Where a look of LOOK letters ends; nowhere if there are not as many."""
        names = ("dead_letter_reach", "all_dead_letter_reach")
        rows = yield self._within(names, wanted, *start, LOOK - 1)
        ((at, id),) = rows or [(None, None)]
        return (None, None) if at is None else (int(at), int(id))

    def _of(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The first statement for a queue, the second one, without that parameter, for all."""
        values = _values(wanted)
        if wanted.queue is None:
            return self._sql.statement(names[1], *values[1:], *params)
        return self._sql.statement(names[0], *values, *params)

    def _within(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The same for statements that know only queue and times."""
        times = micros(wanted.since), micros(wanted.until)
        return self._of_queue(names, wanted, *times, *params)

    def _of_queue(
        self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any
    ) -> Statement:
        """The same for statements that know only the queue."""
        if wanted.queue is None:
            return self._sql.statement(names[1], *params)
        return self._sql.statement(names[0], data(wanted.queue), *params)


def _values(wanted: DeadLetterFilter) -> tuple[Any, ...]:
    """In the order of the statements' parameters."""
    names = (wanted.queue, wanted.channel, wanted.kind, wanted.reason)
    times = micros(wanted.since), micros(wanted.until)
    return (*map(data, names), *times, data(wanted.error_type))


def _counted(row: Row) -> CountedError:
    queue, kind, reason, error_type, error, count, oldest, newest, example = row
    names = (text(queue) or "", text(kind) or "", _cut(reason) or "")
    times = (moment(oldest), moment(newest))
    return CountedError(*names, _cut(error_type), _cut(error), int(count), *times, int(example))


def _cut(value: bytes | str | None) -> str | None:
    """The beginning of a text; the cut may go through a character."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _letter(row: Row) -> DeadLetter:
    id, queue, channel, kind, key, priority, died_at, published_at, first, *rest = row
    attempt, max_attempts, content_type, headers, payload, reason, error_type, error, trace = rest
    return DeadLetter(
        id,
        text(queue) or "",
        text(channel) or "",
        text(kind) or "",
        text(key),
        priority,
        moment(died_at),
        moment(published_at),
        moment(first),
        attempt,
        max_attempts,
        text(content_type) or "",
        json.loads(headers) if headers else {},
        payload,
        text(reason) or "",
        text(error_type),
        text(error),
        text(trace),
    )


_BATCH = 1000

Step = Callable[[Sequence[int]], Plan[int]]


class LockedDeadLetter(NamedTuple):
    """A row of lock_dead_letters."""

    id: int
    queue: bytes
    channel: bytes
    kind: bytes
    key: bytes | None
    key_window: int | None
    priority: int
    attempt: int
    reason: bytes
    error_type: bytes | None
    published_at: int
    first_published_at: int
    payload_size: int
    now: int
    history: bytes
    flow_id: int | None


class MysqlDeadLetters(MysqlDeadLetterLooks):
    """Dead letters: redrive and discard them, in batches."""

    def __init__(
        self, sql: MysqlSql, outbox: MysqlEventOutbox, nodes: MysqlNodeEnds, ends: MysqlSettleEnd
    ) -> None:
        super().__init__(sql)
        self._outbox = outbox
        self._nodes = nodes
        self._ends = ends

    @repeatable
    def redrive(
        self, wanted: Sequence[int] | DeadLetterFilter, max_attempts: int | None, delay: timedelta
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Plan[int]:
            return self._redrive(ids, max_attempts, micros(delay))

        return (yield from self._batches(wanted, step))

    @repeatable
    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        return (yield from self._batches(wanted, self._discard))

    @repeatable
    def untold_dead_letters(
        self, queues: Sequence[str], limit: int, hold: timedelta
    ) -> Plan[list[DeadLetter]]:
        ((moment_now,),) = yield self._sql.statement("clock", self._sql.now())
        now, names = int(moment_now), [data(queue) for queue in queues]
        since = now - micros(TELL_WITHIN)
        rows = yield self._sql.statement("untold_dead_letters", names, since, now, limit)
        if rows:
            yield self._sql.statement(
                "hold_dead_letters", [int(row[0]) for row in rows], now + micros(hold)
            )
        return sorted(map(_letter, rows), key=lambda letter: (letter.died_at, letter.id))

    @repeatable
    def dead_letters_told(self, letters: Sequence[DeadLetterPosition]) -> Plan[None]:
        for one in letters:
            yield self._sql.statement("dead_letters_told", one.id, micros(one.died_at))

    def _redrive(self, ids: Sequence[int], max_attempts: int | None, delay: int) -> Plan[int]:
        letters = yield from self._lock_dead_letters(ids)
        if not letters:
            return 0
        now, found = letters[0].now, [letter.id for letter in letters]
        yield self._sql.statement("redrive", found, now + delay, now, max_attempts)
        yield from self._sql.insert("add_wakes", _wakes(letters, now + delay))
        yield from self._delete_dead_letters(letters, b"redriven", terminal=False)
        yield from self._outbox.add_events("redriven", [_event_row(letter) for letter in letters])
        yield from self._nodes.revive_nodes(_nodes(letters), now)
        return len(letters)

    def _discard(self, ids: Sequence[int]) -> Plan[int]:
        letters = yield from self._lock_dead_letters(ids)
        if not letters:
            return 0
        found = [letter.id for letter in letters]
        yield self._sql.statement("keep_discarded", found, letters[0].now)
        yield from self._delete_dead_letters(letters, b"discarded", terminal=True)
        yield from self._outbox.add_events("discarded", [_event_row(letter) for letter in letters])
        keys = [k for x in letters if (k := ended_key(x.id, x.queue, x.key, x.key_window))]
        yield from self._ends.release_keys(keys, letters[0].now)
        yield from self._nodes.nodes_ended(_nodes(letters), {}, "discarded", letters[0].now)
        return len(letters)

    def _lock_dead_letters(self, ids: Sequence[int]) -> Plan[list[LockedDeadLetter]]:
        rows = yield self._sql.statement("lock_dead_letters", sorted(set(ids)), self._sql.now())
        return [LockedDeadLetter(*row) for row in rows]

    def _delete_dead_letters(
        self, letters: Sequence[LockedDeadLetter], outcome: bytes, *, terminal: bool
    ) -> Plan[None]:
        yield self._sql.statement("delete_dead_letters", [letter.id for letter in letters])
        if letters[0].history != b"none":
            yield from self._sql.insert(
                "add_history", [_history_row(x, outcome, terminal) for x in letters]
            )
        yield from self._ends.count_dead(((x.queue, x.channel) for x in letters), -1)

    def _batches(self, wanted: Sequence[int] | DeadLetterFilter, step: Step) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            return (yield from self._batches_matching(wanted, step))
        done = 0
        for start in range(0, len(wanted), _BATCH):
            done += yield from step(wanted[start : start + _BATCH])
        return done

    def _batches_matching(self, wanted: DeadLetterFilter, step: Step) -> Plan[int]:
        """Page by page, up to now: a message that dies again meanwhile is not taken twice."""
        done, looked = 0, looked_at(wanted, _BATCH)
        rows = yield self._sql.statement("clock", self._sql.now())
        end = int(rows[0][0])
        died_at, letter = None, None
        while True:
            rows = yield self.dead_letter_ids(wanted, looked, died_at, letter, end)
            taken = take_letters(rows, looked, _BATCH, died_at, letter)
            if taken.ids:
                done += yield from step(taken.ids)
            if taken.ended:
                return done
            died_at, letter = taken.died_at, taken.letter


def _nodes(letters: Sequence[LockedDeadLetter]) -> list[int]:
    return [letter.id for letter in letters if letter.flow_id is not None]


def _event_row(letter: LockedDeadLetter) -> EventRow:
    return event_row(letter.id, letter.queue, letter.channel, letter.kind)


def _wakes(letters: Sequence[LockedDeadLetter], due: int) -> list[WakeRow]:
    groups: dict[tuple[bytes, bytes, int], list[int]] = defaultdict(list)
    for letter in letters:
        groups[letter.queue, letter.channel, letter.priority].append(letter.id)
    return [
        (due, pair_id(queue, name), due, min(ids), len(ids), 0, priority, priority > 0, queue, name)
        for (queue, name, priority), ids in groups.items()
    ]


def _history_row(x: LockedDeadLetter, outcome: bytes, terminal: bool) -> HistoryRow:
    times = (x.first_published_at, x.published_at, None, None, x.now, x.payload_size)
    where = (terminal, False, x.priority, x.queue, x.channel, x.kind, None, outcome)
    return (x.id, None, x.attempt, *times, *where, x.reason, x.error_type, None, None)


class MysqlOperations:
    """Bulk operations on dead letters."""

    def __init__(self, sql: MysqlSql, dead_letters: MysqlDeadLetters) -> None:
        self._sql = sql
        self._dead_letters = dead_letters

    @repeatable
    def add_operation(self, order: OperationOrder) -> Plan[Operation]:
        texts = (order.action, json.dumps(order.wanted), json.dumps(order.options))
        who = data(order.actor), self._sql.now()
        yield from self._sql.server_life()
        yield self._sql.statement("add_operation", *map(data, texts), order.total, *who)
        rows = yield self._sql.statement("last_operation")
        return _operation(rows[0])

    @repeatable
    def step_operation(self, operation_id: int | None, limit: int) -> Plan[Operation | None]:
        rows = yield self._sql.statement("lock_operation", operation_id)
        if not rows:
            return None
        id, action, wanted, options, started_at, *position = rows[0]
        by = filter_of(json.loads(wanted))
        looked = looked_at(by, limit)
        letters = yield self._dead_letters.dead_letter_ids(by, looked, *position, started_at)
        taken = take_letters(letters, looked, limit, *position)
        operation = OpenOperation(text(action) or "", json.loads(options))
        moved = yield from take_step(
            operation, taken, self._dead_letters.redrive, self._dead_letters.discard
        )
        yield self._sql.statement("move_operation", *moved, self._sql.now(), id)
        return (yield from self._operation(id))

    @repeatable
    def end_operation(
        self, operation_id: int, state: OperationState, error: str | None
    ) -> Plan[Operation | None]:
        words = data(state), data(error), self._sql.now()
        yield self._sql.statement("end_operation", *words, operation_id)
        return (yield from self._operation(operation_id))

    @repeatable
    def operations(self, operation_id: int | None, limit: int) -> Plan[list[Operation]]:
        rows = yield self._sql.statement("operations", operation_id, limit)
        return [_operation(row) for row in rows]

    def _operation(self, operation_id: int) -> Plan[Operation | None]:
        rows = yield self._sql.statement("operations", operation_id, 1)
        return _operation(rows[0]) if rows else None


def _operation(row: Row) -> Operation:
    id, action, wanted, options, total, done, state, actor, started_at, ended_at, error = row
    return Operation(
        id,
        cast(BulkAction, text(action)),
        json.loads(wanted),
        total,
        done,
        cast(OperationState, text(state)),
        text(actor) or "",
        moment(started_at),
        moment(ended_at),
        text(error),
        json.loads(options),
    )
