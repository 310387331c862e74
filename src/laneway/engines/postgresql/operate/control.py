"""What operators do: audit, pauses, run now, and the registry of workers."""

import json
from collections.abc import Sequence
from datetime import timedelta

from laneway.engines.postgresql.base import PostgresqlSql
from laneway.model import Cancelled, HeldLease, MadeDue
from laneway.operations import AuditEntry, AuditNote, Fairness, Pause, WorkerInfo
from laneway.plan import Plan, Row, as_dict


class PostgresqlAudit:
    """The audit: what operators did."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def add_audit(self, note: AuditNote) -> Plan[None]:
        target = json.dumps(note.target)
        words = (note.actor, note.source, note.action, target, note.affected)
        yield self._sql.statement_now("add_audit", *words)

    def audit(self, limit: int, before: int | None) -> Plan[list[AuditEntry]]:
        rows = yield self._sql.statement("audit", limit, before)
        return [
            AuditEntry(id, at, actor, source, action, json.loads(target), affected)
            for id, at, actor, source, action, target, affected in rows
        ]


class PostgresqlPauses:
    """Pauses of whole queues, and of kinds of messages in them."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def pause_queue(
        self, queue: str, kind: str | None, length: timedelta | None, actor: str, reason: str
    ) -> Plan[Pause]:
        rows = yield self._sql.statement_now("pause_queue", queue, kind, length, actor, reason)
        return Pause(*rows[0])

    def resume_queue(self, queue: str, kind: str | None) -> Plan[bool]:
        rows = yield self._sql.statement_now("resume_queue", queue, kind)
        return bool(rows[0][0])

    def pauses(self, queue: str | None) -> Plan[list[Pause]]:
        rows = yield self._sql.statement_now("pauses", queue)
        return [Pause(*row) for row in rows]


class PostgresqlFairness:
    """By what channels of a queue take turns."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def set_fairness(self, queue: str, turn: timedelta | None) -> Plan[Fairness]:
        seconds = None if turn is None else turn.total_seconds()
        return _fairness(queue, (yield self._sql.statement_now("set_fairness", queue, seconds)))

    def fairness(self, queue: str) -> Plan[Fairness]:
        return _fairness(queue, (yield self._sql.statement("fairness", queue)))

    def time_ahead(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, float]]:
        rows = yield self._sql.statement_now("time_ahead", queue, list(channels))
        return as_dict(rows)


class PostgresqlRunNow:
    """run_now: scheduled messages become due now."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def run_now(self, ids: Sequence[int]) -> Plan[list[MadeDue]]:
        rows = yield self._sql.statement_now("run_now", list(ids))
        status = as_dict(rows)
        return [MadeDue(id, status[id]) for id in ids]


class PostgresqlWorkers:
    """The registry of worker processes, and requests to cancel what they run."""

    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def worker_seen(self, info: WorkerInfo) -> Plan[list[HeldLease]]:
        who = (info.id, info.name, info.host, info.pid, info.version)
        what = (list(info.queues), list(info.kinds))
        load = (info.slots, info.used, info.state == "stopping")
        rows = yield self._sql.statement_now("worker_seen", *who, *what, *load)
        return [HeldLease(*row) for row in rows]

    def worker_gone(self, id: str) -> Plan[None]:
        yield self._sql.statement("worker_gone", id)

    def workers(self, limit: int) -> Plan[list[WorkerInfo]]:
        rows = yield self._sql.statement_now("workers", limit)
        return [_info(row) for row in rows]

    def cancel_running(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        rows = yield self._sql.statement_now("cancel_running", list(ids))
        status = as_dict(rows)
        return [Cancelled(id, status[id]) for id in ids]


def _info(row: Row) -> WorkerInfo:
    id, host, pid, version, queues, kinds, *rest = row
    return WorkerInfo(id, host, pid, version, tuple(queues), tuple(kinds), *rest)


def _fairness(queue: str, rows: Sequence[Row]) -> Fairness:
    if not rows:
        return Fairness(queue, "starts")
    ((turn, since),) = rows
    return Fairness(queue, "time", timedelta(seconds=turn), since)
