"""Bulk operations on dead letters."""

import json

from laneway.engines.postgresql.base import PostgresqlBase
from laneway.operations import Operation, OperationOrder, OperationState
from laneway.plan import Plan, Row


class PostgresqlOperations(PostgresqlBase):
    def add_operation(self, order: OperationOrder) -> Plan[Operation]:
        texts = json.dumps(order.wanted), json.dumps(order.options)
        rows = yield self._statement_now(
            "add_operation", order.action, *texts, order.total, order.actor
        )
        return _operation(rows[0])

    def step_operation(self, operation_id: int | None, limit: int) -> Plan[Operation | None]:
        rows = yield self._statement_now("step_operation", operation_id, limit)
        return _operation(rows[0]) if rows else None

    def end_operation(
        self, operation_id: int, state: OperationState, error: str | None
    ) -> Plan[Operation | None]:
        yield self._statement_now("end_operation", operation_id, state, error)
        found = yield from self.operations(operation_id, 1)
        return found[0] if found else None

    def operations(self, operation_id: int | None, limit: int) -> Plan[list[Operation]]:
        rows = yield self._statement("operations", operation_id, limit)
        return [_operation(row) for row in rows]


def _operation(row: Row) -> Operation:
    id, action, wanted, options, total, done, state, actor, started_at, ended_at, error = row
    counts, times = (total, done, state, actor), (started_at, ended_at)
    return Operation(id, action, json.loads(wanted), *counts, *times, error, json.loads(options))
