"""Dead letters: read, group and count them; redrive and discard them, also in bulk operations."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from laneway.contract import TELL_WITHIN
from laneway.engines.dead_letters import (
    ERROR_START,
    CountedError,
    grouped,
    looked_at,
    take_letters,
)
from laneway.inspection import (
    LOOK,
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.operations import Operation, OperationOrder, OperationState
from laneway.plan import Plan, Row, Statement

from .base import PostgresqlSql

_HEADERS = 12

Position = tuple[datetime | None, int | None]


class PostgresqlDeadLetterLooks:
    """Dead letters: read, group and count them. No look reads more of them than LOOK."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | DeadLetterPosition | None
    ) -> Plan[DeadLetterPage]:
        start: Position = (after.died_at, after.id) if after else (None, None)
        look = LOOK if wanted.rare else limit
        rows = yield self._of(("dead_letters", "all_dead_letters"), wanted, limit, *start, look)
        letters = [_letter(row[2:]) for row in rows if row[2] is not None]
        if len(letters) == limit:
            return DeadLetterPage(letters, DeadLetterPosition(letters[-1].died_at, letters[-1].id))
        return DeadLetterPage(letters, DeadLetterPosition(*rows[0][:2]) if rows[0][0] else None)

    def dead_letter_groups(self, queue: str | None, limit: int) -> Plan[DeadLetterGroups]:
        if queue is None:
            rows = yield self._sql.statement("all_dead_letter_groups", LOOK, ERROR_START)
        else:
            rows = yield self._sql.statement("dead_letter_groups", queue, LOOK, ERROR_START)
        return grouped((CountedError(*row) for row in rows), limit, LOOK)

    def count_dead_letters(
        self, wanted: Sequence[int] | DeadLetterFilter, most: int
    ) -> Plan[DeadLetterCount]:
        if not isinstance(wanted, DeadLetterFilter):
            rows = yield self._sql.statement("count_dead_letter_ids", list(wanted), most + 1)
            found, looked, bound = rows[0][0], 0, 0
        elif wanted.rare:
            names = ("count_dead_letters_matching", "count_all_dead_letters_matching")
            ((found, looked),) = yield self._of(names, wanted, LOOK + 1)
            found, bound = min(found, LOOK), LOOK
        else:
            names = ("count_dead_letters", "count_all_dead_letters")
            ((found,),) = yield self._within(names, wanted, most + 1)
            looked, bound = 0, 0
        return DeadLetterCount(min(int(found), most), found > most or looked > bound)

    def _of(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The first statement for a queue, the second one, without that parameter, for all."""
        values = dead_letter_values(wanted)
        if wanted.queue is None:
            return self._sql.statement(names[1], *values[1:], *params)
        return self._sql.statement(names[0], *values, *params)

    def _within(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The same for statements that know only queue and times."""
        if wanted.queue is None:
            return self._sql.statement(names[1], wanted.since, wanted.until, *params)
        return self._sql.statement(names[0], wanted.queue, wanted.since, wanted.until, *params)


def dead_letter_values(wanted: DeadLetterFilter) -> tuple[object, ...]:
    """In the order of the statements' parameters."""
    names = (wanted.queue, wanted.channel, wanted.kind, wanted.reason)
    return (*names, wanted.since, wanted.until, wanted.error_type)


def _letter(row: Row) -> DeadLetter:
    values = list(row)
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return DeadLetter(*values)


_BATCH = 1000

Step = Callable[[Sequence[int]], Statement]


class PostgresqlDeadLetters(PostgresqlDeadLetterLooks):
    """Dead letters: redrive and discard them, in batches."""

    def redrive(
        self,
        wanted: Sequence[int] | DeadLetterFilter,
        max_attempts: int | None,
        delay: timedelta,
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Statement:
            return self._sql.statement_now("redrive", ids, max_attempts, delay)

        return self._batches(wanted, step)

    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        def step(ids: Sequence[int]) -> Statement:
            return self._sql.statement_now("discard", ids)

        return self._batches(wanted, step)

    def untold_dead_letters(
        self, queues: Sequence[str], limit: int, hold: timedelta
    ) -> Plan[list[DeadLetter]]:
        rows = yield self._sql.statement_now(
            "untold_dead_letters", list(queues), limit, hold, TELL_WITHIN
        )
        return [_letter(row) for row in rows]

    def dead_letters_told(self, letters: Sequence[DeadLetterPosition]) -> Plan[None]:
        ids, died_at = [one.id for one in letters], [one.died_at for one in letters]
        yield self._sql.statement("dead_letters_told", ids, died_at)

    def _batches(self, wanted: Sequence[int] | DeadLetterFilter, step: Step) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            return self._matching(wanted, step)
        return self._given(wanted, step)

    def _given(self, ids: Sequence[int], step: Step) -> Plan[int]:
        done = 0
        for start in range(0, len(ids), _BATCH):
            done += len((yield step(list(ids[start : start + _BATCH]))))
        return done

    def _matching(self, wanted: DeadLetterFilter, step: Step) -> Plan[int]:
        """Page by page, up to now: a message that dies again meanwhile is not taken twice."""
        done, looked = 0, looked_at(wanted, _BATCH)
        died_at, letter, end = None, None, None
        values = dead_letter_values(wanted)
        while True:
            if wanted.queue is None:
                page = (*values[1:], looked, died_at, letter, end)
                rows = yield self._sql.statement_now("all_dead_letter_ids", *page)
            else:
                page = (*values, looked, died_at, letter, end)
                rows = yield self._sql.statement_now("dead_letter_ids", *page)
            end = rows[-1][3] if rows else end
            taken = take_letters([row[:3] for row in rows], looked, _BATCH, died_at, letter)
            if taken.ids:
                done += len((yield step(taken.ids)))
            if taken.ended:
                return done
            died_at, letter = taken.died_at, taken.letter


class PostgresqlOperations:
    """Bulk operations on dead letters."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def add_operation(self, order: OperationOrder) -> Plan[Operation]:
        texts = json.dumps(order.wanted), json.dumps(order.options)
        rows = yield self._sql.statement_now(
            "add_operation", order.action, *texts, order.total, order.actor
        )
        return _operation(rows[0])

    def step_operation(self, operation_id: int | None, limit: int) -> Plan[Operation | None]:
        rows = yield self._sql.statement_now("step_operation", operation_id, limit)
        return _operation(rows[0]) if rows else None

    def end_operation(
        self, operation_id: int, state: OperationState, error: str | None
    ) -> Plan[Operation | None]:
        yield self._sql.statement_now("end_operation", operation_id, state, error)
        found = yield from self.operations(operation_id, 1)
        return found[0] if found else None

    def operations(self, operation_id: int | None, limit: int) -> Plan[list[Operation]]:
        rows = yield self._sql.statement("operations", operation_id, limit)
        return [_operation(row) for row in rows]


def _operation(row: Row) -> Operation:
    id, action, wanted, options, total, done, state, actor, started_at, ended_at, error = row
    counts, times = (total, done, state, actor), (started_at, ended_at)
    return Operation(id, action, json.loads(wanted), *counts, *times, error, json.loads(options))
