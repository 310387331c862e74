"""What operators do: audit, pauses, run now, and the registry of workers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from laneway.engines.sqlite.base import SqliteSql, listed
from laneway.engines.sqlite.channels import CountChanges, SqliteChannelRows, SqliteLanes, WaitingRow
from laneway.engines.sqlite.settle.settle import SqliteSettle
from laneway.engines.times import micros, moment
from laneway.model import Cancelled, HeldLease, MadeDue
from laneway.operations import FORGOTTEN_AFTER, AuditEntry, AuditNote, Fairness, Pause, WorkerInfo
from laneway.plan import Plan, Row, as_dict


class SqliteAudit:
    """The audit: what operators did."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def add_audit(self, note: AuditNote) -> Plan[None]:
        target = json.dumps(note.target)
        words = (note.actor, note.source, note.action, target, note.affected)
        yield self._sql.statement("add_audit", self._sql.now(), *words)

    def audit(self, limit: int, before: int | None) -> Plan[list[AuditEntry]]:
        rows = yield self._sql.read_outside("audit", limit, before)
        return [
            AuditEntry(id, moment(at), actor, source, action, json.loads(target), affected)
            for id, at, actor, source, action, target, affected in rows
        ]


class SqlitePauses:
    """Pauses of whole queues, and of kinds of messages in them."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def pause_queue(
        self, queue: str, kind: str | None, length: timedelta | None, actor: str, reason: str
    ) -> Plan[Pause]:
        state = yield from self._sql.begin_write()
        until = None if length is None else state.now + micros(length)
        yield self._sql.statement("delete_pause", queue, kind)
        yield self._sql.statement("add_pause", queue, kind, until, state.now, actor, reason)
        return Pause(queue, kind, moment(until), moment(state.now), actor, reason)

    def resume_queue(self, queue: str, kind: str | None) -> Plan[bool]:
        state = yield from self._sql.begin_write()
        rows = yield self._sql.statement("delete_pause", queue, kind)
        return any(until is None or until > state.now for (until,) in rows)

    def pauses(self, queue: str | None) -> Plan[list[Pause]]:
        rows = yield self._sql.read_outside("pauses", queue, self._sql.now())
        return [
            Pause(queue, kind, moment(until), moment(since), actor, reason)
            for queue, kind, until, since, actor, reason in rows
        ]


class SqliteFairness:
    """By what channels of a queue take turns."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def set_fairness(self, queue: str, turn: timedelta | None) -> Plan[Fairness]:
        state = yield from self._sql.begin_write()
        if turn is None:
            yield self._sql.statement("delete_fair_queue", queue)
            yield self._sql.statement("delete_fair_channels", queue)
        else:
            yield self._sql.statement("set_fair_queue", queue, turn.total_seconds(), state.now)
        yield self._sql.statement("count_fair_queues")
        return _fairness(queue, (yield self._sql.statement("fairness", queue)))

    def fairness(self, queue: str) -> Plan[Fairness]:
        return _fairness(queue, (yield self._sql.read_outside("fairness", queue)))

    def time_ahead(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, float]]:
        rows = yield self._sql.read_outside("time_ahead", queue, listed(channels))
        return as_dict(rows)


class SqliteRunNow:
    """run_now: scheduled messages become due now."""

    def __init__(self, sql: SqliteSql, lanes: SqliteLanes, rows: SqliteChannelRows) -> None:
        self._sql = sql
        self._lanes = lanes
        self._rows = rows

    def run_now(self, ids: Sequence[int]) -> Plan[list[MadeDue]]:
        state = yield from self._sql.begin_write(turns=len(ids))
        rows = yield self._sql.statement("message_states", listed(ids))
        found: dict[int, Any] = as_dict(rows)
        waiting = [
            WaitingRow(*row) for row in (yield self._sql.statement("waiting_messages", listed(ids)))
        ]
        found |= dict.fromkeys((row.id for row in waiting), "waiting")
        parked = {row[0] for row in (yield self._sql.statement("behind_others", listed(ids)))}
        later = [row for row in waiting if row.due > state.now and row.id not in parked]
        made_due = [row.id for row in later]
        if later:
            yield self._sql.many("delete_waiting", later)
            yield from self._lanes.no_longer_waiting(made_due, state)
            yield self._sql.statement("make_due", listed(made_due), state.now)
            yield self._sql.statement("add_waiting_again", listed(made_due))
            yield from self._lanes.now_waiting(made_due, state)
            changes = CountChanges()
            for channel_id, priority, *_ in later:
                changes.add(channel_id, priority=priority, due=state.now)
            yield from self._rows.update_counts(changes, state)
        found |= dict.fromkeys(made_due, "due")
        return [MadeDue(id, found.get(id, "absent")) for id in ids]


class SqliteWorkers:
    """The registry of worker processes, and requests to cancel what they run."""

    def __init__(self, sql: SqliteSql, leases: SqliteSettle) -> None:
        self._sql = sql
        self._leases = leases

    def worker_seen(self, info: WorkerInfo) -> Plan[list[HeldLease]]:
        who = (info.id, info.name, info.host, info.pid, info.version)
        what = (listed(info.queues), listed(info.kinds))
        load = (info.slots, info.used, info.state == "stopping")
        rows = yield self._sql.statement("worker_seen", *who, *what, *load, self._sql.now())
        return [HeldLease(*lease) for lease in json.loads(rows[0][0])]

    def worker_gone(self, id: str) -> Plan[None]:
        yield self._sql.statement("worker_gone", id)

    def workers(self, limit: int) -> Plan[list[WorkerInfo]]:
        rows = yield self._sql.read_outside("workers", limit, self._sql.now())
        return [_info(row) for row in rows]

    def cancel_running(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """In one transaction with the only write lock: no lease ends meanwhile."""
        results = yield from self._leases.cancel(ids)
        leased = [result.id for result in results if result.status == "leased"]
        if leased:
            yield self._sql.statement("add_cancel_requests", listed(leased), self._sql.now())
        return [replace(r, status="requested") if r.status == "leased" else r for r in results]

    def forget_workers(self, now: int, limit: int) -> Plan[int]:
        """For upkeep: workers that vanished long ago, and requests whose lease has ended."""
        old = yield self._sql.statement("delete_old_workers", now - micros(FORGOTTEN_AFTER), limit)
        requests = yield self._sql.statement("delete_old_requests", limit)
        return len(old) + len(requests)


def _info(row: Row) -> WorkerInfo:
    id, host, pid, version, queues, kinds, slots, used, started, seen, state, name = row
    names = tuple(json.loads(queues)), tuple(json.loads(kinds))
    times = moment(started), moment(seen)
    return WorkerInfo(id, host, pid, version, *names, slots, used, *times, state, name)


def _fairness(queue: str, rows: Sequence[Row]) -> Fairness:
    if not rows:
        return Fairness(queue, "starts")
    ((turn, since),) = rows
    return Fairness(queue, "time", timedelta(seconds=turn), moment(since))
