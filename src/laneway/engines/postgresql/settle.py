"""The verbs of a lease holder, and cancel. Each checks the fence and answers per message."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import repeat
from typing import Any

from laneway.contract import Hold
from laneway.model import (
    Cancelled,
    Deferral,
    Extension,
    Failure,
    Progress,
    ProgressNote,
    Results,
    Return,
    Settled,
    SettleStatus,
)
from laneway.plan import Plan, Row, Statement, as_dict

from .base import PostgresqlSql


class PostgresqlSettle:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def complete(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        """The function answers only the lost ones."""
        ids, fences = [lease[0] for lease in leases], [lease[1] for lease in leases]
        if results:
            rows = yield self._complete_kept(ids, fences, waited, results, "completed")
        elif waited:
            rows = yield self._sql.statement_now("complete_after_waits", ids, fences, _json(waited))
        else:
            rows = yield self._sql.statement_now("complete", ids, fences)
        return _ended(ids, fences, "completed", rows)

    def end_cancelled(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        ids, fences = [lease[0] for lease in leases], [lease[1] for lease in leases]
        if results:
            rows = yield self._complete_kept(ids, fences, waited, results, "cancelled")
        else:
            rows = yield self._sql.statement_now("end_cancelled", ids, fences, _json(waited or {}))
        return _ended(ids, fences, "cancelled", rows)

    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]:
        return self._settle("defer", deferrals)

    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]:
        return self._settle("fail", failures)

    def extend(
        self, extensions: Sequence[Extension], notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Settled]]:
        if notes:
            return self._settle("extend_progress", extensions, *_columns(notes))
        return self._settle("extend", extensions)

    def hold(
        self, leases: Sequence[Row], span: timedelta, notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Hold]]:
        ids, fences = [lease[0] for lease in leases], [lease[1] for lease in leases]
        if notes:
            said = _columns(notes)
            rows = yield self._sql.statement_now("hold_progress", ids, fences, span, *said)
        else:
            rows = yield self._sql.statement_now("hold", ids, fences, span)
        others: dict[tuple[int, int], Hold] = {(id, fence): hold for id, fence, hold in rows}
        return [others.get(lease, "extended") for lease in zip(ids, fences, strict=True)]

    def progress(self, ids: Sequence[int]) -> Plan[list[Progress | None]]:
        rows = yield self._sql.statement("progress", list(ids))
        found = {row[0]: Progress(*row[1:]) for row in rows}
        return [found.get(id) for id in ids]

    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        return self._settle("give_back", returns)

    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        rows = yield self._sql.statement_now("once", queue, key, keep)
        return bool(rows[0][0])

    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        rows = yield self._sql.statement_now("cancel", list(ids))
        status = as_dict(rows)
        return [Cancelled(id, status[id]) for id in ids]

    def _complete_kept(
        self,
        ids: list[int],
        fences: list[int],
        waited: Mapping[int, int] | None,
        results: Results,
        outcome: str,
    ) -> Statement:
        kept = _columns([(*lease, *result) for lease, result in results.items()])
        return self._sql.statement_now(
            "complete_kept", ids, fences, *kept, _json(waited or {}), outcome
        )

    def _settle(
        self, verb: str, items: Sequence[tuple[Any, ...]], *more: Any
    ) -> Plan[list[Settled]]:
        rows = yield self._sql.statement_now(verb, *_columns(items), *more)
        # In the function's own order, and one row for a message that was named twice.
        answers = {(row[0], row[1]): Settled(*row) for row in rows}
        return [answers[item[0], item[1]] for item in items]


def _ended(
    ids: list[int], fences: list[int], status: SettleStatus, lost_rows: Sequence[Row]
) -> list[Settled]:
    if not lost_rows:
        # Built without a call per message, because nearly all answers are this one.
        answers = zip(ids, fences, repeat(status), repeat(None))
        return list(map(tuple.__new__, repeat(Settled), answers))
    lost = {(id, fence) for id, fence, *_ in lost_rows}
    return [
        Settled(*held, "lost" if held in lost else status) for held in zip(ids, fences, strict=True)
    ]


def _json(waited: Mapping[int, int]) -> str:
    return json.dumps(waited, separators=(",", ":"))


def _columns(items: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(values) for values in zip(*items, strict=True)]
