"""Bulk operations on dead letters."""

import json
from typing import cast

from laneway.engines.mysql.base import repeatable
from laneway.engines.mysql.dead_letters import MysqlDeadLetters
from laneway.engines.mysql.names import data, text
from laneway.engines.operation_steps import (
    OpenOperation,
    filter_of,
    looked_at,
    take_letters,
    take_step,
)
from laneway.engines.times import moment
from laneway.operations import BulkAction, Operation, OperationOrder, OperationState
from laneway.plan import Plan, Row


class MysqlOperations(MysqlDeadLetters):
    @repeatable
    def add_operation(self, order: OperationOrder) -> Plan[Operation]:
        texts = (order.action, json.dumps(order.wanted), json.dumps(order.options))
        who = data(order.actor), self._now()
        yield self._statement("add_operation", *map(data, texts), order.total, *who)
        rows = yield self._statement("last_operation")
        return _operation(rows[0])

    @repeatable
    def step_operation(self, operation_id: int | None, limit: int) -> Plan[Operation | None]:
        rows = yield self._statement("lock_operation", operation_id)
        if not rows:
            return None
        id, action, wanted, options, started_at, *position = rows[0]
        by = filter_of(json.loads(wanted))
        looked = looked_at(by, limit)
        letters = yield self._dead_letter_ids(by, looked, *position, started_at)
        taken = take_letters(letters, looked, limit, *position)
        operation = OpenOperation(text(action) or "", json.loads(options))
        moved = yield from take_step(operation, taken, self.redrive, self.discard)
        yield self._statement("move_operation", *moved, self._now(), id)
        return (yield from self._operation(id))

    @repeatable
    def end_operation(
        self, operation_id: int, state: OperationState, error: str | None
    ) -> Plan[Operation | None]:
        words = data(state), data(error), self._now()
        yield self._statement("end_operation", *words, operation_id)
        return (yield from self._operation(operation_id))

    @repeatable
    def operations(self, operation_id: int | None, limit: int) -> Plan[list[Operation]]:
        rows = yield self._statement("operations", operation_id, limit)
        return [_operation(row) for row in rows]

    def _operation(self, operation_id: int) -> Plan[Operation | None]:
        rows = yield self._statement("operations", operation_id, 1)
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
