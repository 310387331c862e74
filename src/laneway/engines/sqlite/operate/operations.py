"""Bulk operations on dead letters."""

import json

from laneway.engines.operation_steps import (
    OpenOperation,
    filter_of,
    looked_at,
    take_letters,
    take_step,
)
from laneway.engines.sqlite.dead_letters import SqliteDeadLetters
from laneway.engines.times import moment
from laneway.operations import Operation, OperationOrder, OperationState
from laneway.plan import Plan, Row


class SqliteOperations(SqliteDeadLetters):
    def add_operation(self, order: OperationOrder) -> Plan[Operation]:
        state = yield from self._begin_write()
        texts = json.dumps(order.wanted), json.dumps(order.options)
        rows = yield self._statement(
            "add_operation", order.action, *texts, order.total, order.actor, state.now
        )
        return _operation(rows[0])

    def step_operation(self, operation_id: int | None, limit: int) -> Plan[Operation | None]:
        if not (yield self._read_outside("running_operation", operation_id)):
            return None
        state = yield from self._begin_write()
        rows = yield self._statement("running_operation", operation_id)
        if not rows:
            return None
        id, action, wanted, options, started_at, *position = rows[0]
        by = filter_of(json.loads(wanted))
        looked = looked_at(by, limit)
        letters = yield self._dead_letter_ids(by, looked, *position, started_at)
        taken = take_letters(letters, looked, limit, *position)
        operation = OpenOperation(action, json.loads(options))
        moved = yield from take_step(operation, taken, self.redrive, self.discard)
        yield self._statement("move_operation", id, *moved, state.now)
        rows = yield self._statement("operations", id, 1)
        return _operation(rows[0])

    def end_operation(
        self, operation_id: int, state: OperationState, error: str | None
    ) -> Plan[Operation | None]:
        now = (yield from self._begin_write()).now
        yield self._statement("end_operation", operation_id, state, error, now)
        rows = yield self._statement("operations", operation_id, 1)
        return _operation(rows[0]) if rows else None

    def operations(self, operation_id: int | None, limit: int) -> Plan[list[Operation]]:
        rows = yield self._read_outside("operations", operation_id, limit)
        return [_operation(row) for row in rows]


def _operation(row: Row) -> Operation:
    id, action, wanted, options, total, done, state, actor, started_at, ended_at, error = row
    times = moment(started_at), moment(ended_at)
    counts = total, done, state, actor
    return Operation(id, action, json.loads(wanted), *counts, *times, error, json.loads(options))
