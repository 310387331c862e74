"""Dead letters: read, group and count them; redrive and discard them, also in bulk operations."""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

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
from laneway.inspection import (
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.operations import Operation, OperationOrder, OperationState
from laneway.plan import Plan, Row, Statement

from .base import SqliteSql, listed
from .channels import CountChanges, SqliteChannelRows, SqliteLanes
from .events import SqliteEventOutbox
from .settle.end import SqliteEndedKey, SqliteNodeEnds, SqliteSettleEnd

LOOK = 4_000
"""Fewer than on PostgreSQL: those that are grouped are sorted."""
_AGES = slice(6, 8)  # of a counted error

Position = tuple[int | None, int | None]


class SqliteDeadLetterLooks:
    """Dead letters: read, group and count them. No look reads more of them than LOOK."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

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

    def dead_letter_groups(self, queue: str | None, limit: int) -> Plan[DeadLetterGroups]:
        if queue is None:
            rows = yield self._sql.read_outside("all_dead_letter_groups", LOOK, ERROR_START)
        else:
            rows = yield self._sql.read_outside("dead_letter_groups", queue, LOOK, ERROR_START)
        return grouped((_counted(row) for row in rows), limit, LOOK)

    def count_dead_letters(
        self, wanted: Sequence[int] | DeadLetterFilter, most: int
    ) -> Plan[DeadLetterCount]:
        looked, bound = 0, 0
        if not isinstance(wanted, DeadLetterFilter):
            ((found,),) = yield self._sql.read_outside(
                "count_dead_letter_ids", listed(wanted), most + 1
            )
        elif wanted.rare:
            names = ("count_dead_letters_matching", "count_all_dead_letters_matching")
            ((found, looked),) = yield self._of(names, wanted, LOOK + 1)
            found, bound = min(found, LOOK), LOOK
        else:
            names = ("count_dead_letters", "count_all_dead_letters")
            ((found,),) = yield self._within(names, wanted, most + 1)
        return DeadLetterCount(min(int(found), most), found > most or looked > bound)

    def dead_letter_ids(
        self, wanted: DeadLetterFilter, looked: int, *rest: Any, outside: bool = False
    ) -> Statement:
        """``outside`` of a transaction, or within the one that the caller has begun."""
        names = ("dead_letter_ids", "all_dead_letter_ids")
        return self._of(names, wanted, looked, *rest)._replace(outside=outside)

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
            return self._sql.read_outside(names[1], *values[1:], *params)
        return self._sql.read_outside(names[0], *values, *params)

    def _within(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The same for statements that know only queue and times."""
        times = micros(wanted.since), micros(wanted.until)
        if wanted.queue is None:
            return self._sql.read_outside(names[1], *times, *params)
        return self._sql.read_outside(names[0], wanted.queue, *times, *params)


def _values(wanted: DeadLetterFilter) -> tuple[Any, ...]:
    """In the order of the statements' parameters."""
    names = (wanted.queue, wanted.channel, wanted.kind, wanted.reason)
    times = micros(wanted.since), micros(wanted.until)
    return (*names, *times, wanted.error_type)


def _counted(row: Row) -> CountedError:
    values: list[Any] = list(row)
    values[_AGES] = map(moment, values[_AGES])
    return CountedError(*values)


def _letter(row: Row) -> DeadLetter:
    id, queue, channel, kind, key, priority, died, published, first, *rest = row
    attempt, max_attempts, content_type, headers, payload, *why = rest
    return DeadLetter(
        id,
        queue,
        channel,
        kind,
        key,
        priority,
        moment(died),
        moment(published),
        moment(first),
        attempt,
        max_attempts,
        content_type,
        json.loads(headers) if headers else {},
        payload,
        *why,
    )


_BATCH = 1000

Step = Callable[[Sequence[int]], Plan[int]]


class SqliteDeadLetters(SqliteDeadLetterLooks):
    """Dead letters: redrive and discard them, in batches of up to 1000."""

    def __init__(
        self,
        sql: SqliteSql,
        rows: SqliteChannelRows,
        lanes: SqliteLanes,
        outbox: SqliteEventOutbox,
        nodes: SqliteNodeEnds,
        ends: SqliteSettleEnd,
    ) -> None:
        super().__init__(sql)
        self._rows = rows
        self._lanes = lanes
        self._outbox = outbox
        self._nodes = nodes
        self._ends = ends

    def redrive(
        self,
        wanted: Sequence[int] | DeadLetterFilter,
        max_attempts: int | None,
        delay: timedelta,
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Plan[int]:
            return self._redrive(ids, max_attempts, micros(delay))

        return self._batches(wanted, step)

    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        return self._batches(wanted, self._discard)

    def untold_dead_letters(
        self, queues: Sequence[str], limit: int, hold: timedelta
    ) -> Plan[list[DeadLetter]]:
        times = self._sql.now() - micros(TELL_WITHIN), self._sql.now()
        wanted = ("untold_dead_letter_ids", listed(queues), *times, limit)
        if not (yield self._sql.read_outside(*wanted)):
            return []
        state = yield from self._sql.begin_write()
        ids = yield self._sql.statement(*wanted)
        until = state.now + micros(hold)
        rows = yield self._sql.statement("hold_dead_letters", listed(row[0] for row in ids), until)
        return sorted(map(_letter, rows), key=lambda letter: (letter.died_at, letter.id))

    def dead_letters_told(self, letters: Sequence[DeadLetterPosition]) -> Plan[None]:
        yield from self._sql.begin_write()
        yield self._sql.many(
            "dead_letters_told", [(one.id, micros(one.died_at)) for one in letters]
        )

    def _redrive(self, wanted: Sequence[int], max_attempts: int | None, delay: int) -> Plan[int]:
        state = yield from self._sql.begin_write(turns=len(wanted))
        rows = yield self._sql.statement("dead_letter_channels", listed(wanted))
        ids = listed(dict.fromkeys(row[0] for row in rows))
        names = list(dict.fromkeys((queue, channel) for _, queue, channel in rows))
        yield from self._rows.channels(names, state.now)
        due = state.now + delay
        back = yield self._sql.statement("redrive", ids, due, max_attempts, state.now)
        if not back:
            return 0
        yield self._sql.statement("add_dead_letter_history", ids, "redriven", False, state.now)
        yield self._sql.statement("subtract_dead_counts", ids)
        yield self._sql.statement("delete_dead_letters", ids)
        yield self._sql.statement("add_waiting_again", ids)
        yield from self._lanes.now_waiting((row[0] for row in back), state)
        changes = CountChanges()
        for _, channel_id, priority in back:
            changes.add(channel_id, more=1, priority=priority, due=due)
        yield from self._rows.update_counts(changes, state)
        yield from self._outbox.add_events("redriven", [row[0] for row in back], state)
        yield from self._nodes.revive_nodes([row[0] for row in back], state)
        return len(back)

    def _discard(self, wanted: Sequence[int]) -> Plan[int]:
        state = yield from self._sql.begin_write()
        ids = listed(dict.fromkeys(wanted))
        yield self._sql.statement("add_dead_letter_history", ids, "discarded", True, state.now)
        yield self._sql.statement("subtract_dead_counts", ids)
        yield from self._outbox.add_dead_letter_events(
            "discarded", list(dict.fromkeys(wanted)), state
        )
        yield self._sql.statement("keep_discarded", ids, state.now)
        gone = yield self._sql.statement("delete_dead_letters", ids)
        keys = [
            SqliteEndedKey(queue, key, id, window)
            for id, queue, key, window in gone
            if key is not None
        ]
        yield from self._ends.release_keys(keys, CountChanges(), state)
        yield from self._nodes.nodes_ended([row[0] for row in gone], {}, "discarded", state)
        return len(gone)

    def _batches(self, wanted: Sequence[int] | DeadLetterFilter, step: Step) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            return self._matching(wanted, step)
        return self._given(wanted, step)

    def _given(self, ids: Sequence[int], step: Step) -> Plan[int]:
        done = 0
        for start in range(0, len(ids), _BATCH):
            done += yield from step(ids[start : start + _BATCH])
        return done

    def _matching(self, wanted: DeadLetterFilter, step: Step) -> Plan[int]:
        """Page by page, up to now: a message that dies again meanwhile is not taken twice."""
        done, looked = 0, looked_at(wanted, _BATCH)
        died_at, letter, end = None, None, self._sql.now()
        while True:
            rows = yield self.dead_letter_ids(wanted, looked, died_at, letter, end, outside=True)
            taken = take_letters(rows, looked, _BATCH, died_at, letter)
            if taken.ids:
                done += yield from step(taken.ids)
            if taken.ended:
                return done
            died_at, letter = taken.died_at, taken.letter


class SqliteOperations:
    """Bulk operations on dead letters."""

    def __init__(self, sql: SqliteSql, dead_letters: SqliteDeadLetters) -> None:
        self._sql = sql
        self._dead_letters = dead_letters

    def add_operation(self, order: OperationOrder) -> Plan[Operation]:
        state = yield from self._sql.begin_write()
        texts = json.dumps(order.wanted), json.dumps(order.options)
        rows = yield self._sql.statement(
            "add_operation", order.action, *texts, order.total, order.actor, state.now
        )
        return _operation(rows[0])

    def step_operation(self, operation_id: int | None, limit: int) -> Plan[Operation | None]:
        if not (yield self._sql.read_outside("running_operation", operation_id)):
            return None
        state = yield from self._sql.begin_write()
        rows = yield self._sql.statement("running_operation", operation_id)
        if not rows:
            return None
        id, action, wanted, options, started_at, *position = rows[0]
        by = filter_of(json.loads(wanted))
        looked = looked_at(by, limit)
        letters = yield self._dead_letters.dead_letter_ids(by, looked, *position, started_at)
        taken = take_letters(letters, looked, limit, *position)
        operation = OpenOperation(action, json.loads(options))
        moved = yield from take_step(
            operation, taken, self._dead_letters.redrive, self._dead_letters.discard
        )
        yield self._sql.statement("move_operation", id, *moved, state.now)
        rows = yield self._sql.statement("operations", id, 1)
        return _operation(rows[0])

    def end_operation(
        self, operation_id: int, state: OperationState, error: str | None
    ) -> Plan[Operation | None]:
        now = (yield from self._sql.begin_write()).now
        yield self._sql.statement("end_operation", operation_id, state, error, now)
        rows = yield self._sql.statement("operations", operation_id, 1)
        return _operation(rows[0]) if rows else None

    def operations(self, operation_id: int | None, limit: int) -> Plan[list[Operation]]:
        rows = yield self._sql.read_outside("operations", operation_id, limit)
        return [_operation(row) for row in rows]


def _operation(row: Row) -> Operation:
    id, action, wanted, options, total, done, state, actor, started_at, ended_at, error = row
    times = moment(started_at), moment(ended_at)
    counts = total, done, state, actor
    return Operation(id, action, json.loads(wanted), *counts, *times, error, json.loads(options))
