"""What operators do: audit, pauses, run now, and the registry of workers."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

from laneway.engines.mysql.append import WakeRow
from laneway.engines.mysql.base import MysqlChannelLocks, MysqlSql, data, pair_id, repeatable, text
from laneway.engines.mysql.settle.settle import MysqlCancel, WaitingMessage
from laneway.engines.times import micros, moment
from laneway.model import Cancelled, HeldLease, MadeDue
from laneway.operations import (
    FORGOTTEN_AFTER,
    AuditEntry,
    AuditNote,
    Fairness,
    Pause,
    Source,
    WorkerInfo,
)
from laneway.plan import Plan, Row


class MysqlAudit:
    """The audit: what operators did."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def add_audit(self, note: AuditNote) -> Plan[None]:
        words = map(data, (note.actor, note.source, note.action, json.dumps(note.target)))
        yield self._sql.statement("add_audit", *words, note.affected, self._sql.now())

    @repeatable
    def audit(self, limit: int, before: int | None) -> Plan[list[AuditEntry]]:
        rows = yield self._sql.statement("audit", limit, before)
        return [_entry(row) for row in rows]


def _entry(row: Row) -> AuditEntry:
    id, at, actor, source, action, target, affected = row
    words = text(actor) or "", cast(Source, text(source)), text(action) or ""
    return AuditEntry(id, moment(at), *words, json.loads(target), affected)


class MysqlPauses:
    """Pauses of whole queues, and of kinds of messages in them."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def pause_queue(
        self, queue: str, kind: str | None, length: timedelta | None, actor: str, reason: str
    ) -> Plan[Pause]:
        """When it is committed, nothing of it starts: claims share the lock that this takes."""
        yield self._sql.statement("count_pause")
        yield from self._end_pause(queue, kind)
        rows = yield self._sql.statement("clock", self._sql.now())
        now = int(rows[0][0])
        until = None if length is None else now + micros(length)
        names = data(queue), data(kind)
        yield self._sql.statement("add_pause", *names, until, now, data(actor), data(reason))
        return Pause(queue, kind, moment(until), moment(now), actor, reason)

    @repeatable
    def resume_queue(self, queue: str, kind: str | None) -> Plan[bool]:
        ended = yield from self._end_pause(queue, kind)
        rows = yield self._sql.statement("clock", self._sql.now())
        return any(until is None or int(until) > int(rows[0][0]) for until in ended)

    @repeatable
    def pauses(self, queue: str | None) -> Plan[list[Pause]]:
        rows = yield self._sql.statement("pauses", data(queue), self._sql.now())
        return [_pause(row) for row in rows]

    def _end_pause(self, queue: str, kind: str | None) -> Plan[list[int | None]]:
        """Returns until when they would have held."""
        rows = yield self._sql.statement("lock_pause", data(queue), data(kind))
        if rows:
            yield self._sql.statement("delete_pauses", [int(row[0]) for row in rows])
        return [row[1] for row in rows]


def _pause(row: Row) -> Pause:
    queue, kind, until, since, actor, reason = row
    words = text(actor) or "", text(reason) or ""
    return Pause(text(queue) or "", text(kind), moment(until), moment(since), *words)


class MysqlFairness:
    """By what channels of a queue take turns."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def set_fairness(self, queue: str, turn: timedelta | None) -> Plan[Fairness]:
        """Claims share a row that this writes: those that look later know of it."""
        name = data(queue)
        if turn is None:
            yield self._sql.statement("delete_fair_queue", name)
            yield self._sql.statement("delete_fair_channels", name)
        else:
            now = int((yield self._sql.statement("clock", self._sql.now()))[0][0])
            yield self._sql.statement("set_fair_queue", name, turn.total_seconds(), now)
        yield self._sql.statement("count_fair_queues")
        return _fairness(queue, (yield self._sql.statement("fairness", name)))

    @repeatable
    def fairness(self, queue: str) -> Plan[Fairness]:
        return _fairness(queue, (yield self._sql.statement("fairness", data(queue))))

    @repeatable
    def time_ahead(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, float]]:
        ids = {pair_id(queue.encode(), name.encode()): name for name in channels}
        paces = yield self._sql.statement("fair_paces", [data(queue)], self._sql.now())
        if not paces:
            return {}
        reached, turn = map(float, paces[0][1:])
        rows = yield self._sql.statement("fair_channels", sorted(ids))
        ahead = {ids[bytes(id)]: float(booked) - reached for id, _, booked, *_ in rows}
        return {name: seconds for name, seconds in ahead.items() if seconds >= turn}


def _fairness(queue: str, rows: Sequence[Row]) -> Fairness:
    if not rows:
        return Fairness(queue, "starts")
    return Fairness(queue, "time", timedelta(seconds=float(rows[0][0])), moment(rows[0][1]))


class MysqlControlCleanup:
    """A part of upkeep: old rows of the audit, and pauses that have ended."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def clean_up_control(self, now: int, limit: int) -> Plan[int]:
        """Returns how many rows were deleted. Pauses that have ended hold nobody up; they are only
        removed from the list, and from the rows of channels."""
        rows = yield self._sql.statement("control_to_delete", now, limit)
        pauses = [int(id) for table, id in rows if table == 0]
        audit = [int(id) for table, id in rows if table == 1]
        if pauses:
            yield self._sql.statement("delete_pauses", pauses)
        if audit:
            yield self._sql.statement("delete_audit", audit)
        if any(table == 2 for table, _ in rows):
            channels = yield self._sql.statement("timed_channels", now, limit)
            if channels:
                yield self._sql.statement("pause", [bytes(id) for (id,) in channels], False, None)
        return len(pauses) + len(audit)


class MysqlRunNow:
    """run_now: scheduled messages become due now.

    Invariant: a message is claimed, cancelled or made due, one after the other, because each of
    these locks its channel."""

    def __init__(self, sql: MysqlSql, locks: MysqlChannelLocks, cancel: MysqlCancel) -> None:
        self._sql = sql
        self._locks = locks
        self._cancel = cancel

    @repeatable
    def run_now(self, ids: Sequence[int]) -> Plan[list[MadeDue]]:
        wanted = sorted(set(ids))
        rows = yield self._sql.statement("message_channels", wanted)
        yield from self._locks.lock_channels([(row[2], row[3]) for row in rows])
        rows = yield self._sql.statement("waiting_messages", wanted, self._sql.now())
        waiting = [WaitingMessage(*row) for row in rows]
        later = [message for message in waiting if message.due > message.now]
        if any(message.key is not None for message in later):
            rows = yield self._sql.statement("behind_others", [message.id for message in later])
            parked = {int(row[0]) for row in rows}
            later = [message for message in later if message.id not in parked]
        if later:
            yield from self._cancel.leave_lanes(later)
            yield self._sql.statement("make_due", [m.id for m in later], later[0].now)
            yield from self._sql.insert("add_wakes", [wake for m in later for wake in _wakes(m)])
        status: dict[int, Any] = {message.id: "waiting" for message in waiting}
        status |= {message.id: "due" for message in later}
        if len(status) < len(wanted):
            others = [id for id in wanted if id not in status]
            rows = yield self._sql.statement("message_states", others)
            status |= {int(id): _text(state) for id, state in rows}
        return [MadeDue(id, status.get(id, "absent")) for id in ids]


def _wakes(m: WaitingMessage) -> list[WakeRow]:
    """Its own wake counts it at the old time: one fewer just after that, and one more now."""
    names = m.queue, m.channel
    return [
        (m.due + 1, m.channel_id, m.due, m.id, -1, 0, m.priority, False, *names),
        (m.now, m.channel_id, m.now, m.id, 1, 0, m.priority, m.priority > 0, *names),
    ]


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


_TRIES = 5


class MysqlWorkers:
    """The registry of worker processes, and requests to cancel what they run."""

    def __init__(self, sql: MysqlSql, cancel: MysqlCancel) -> None:
        self._sql = sql
        self._cancel = cancel

    @repeatable
    def worker_seen(self, info: WorkerInfo) -> Plan[list[HeldLease]]:
        who = (data(info.id), data(info.name), data(info.host), info.pid, data(info.version))
        what = (json.dumps(info.queues).encode(), json.dumps(info.kinds).encode())
        load = (info.slots, info.used, info.state == "stopping")
        yield self._sql.statement("worker_seen", *who, *what, *load, self._sql.now())
        rows = yield self._sql.statement("cancel_requests", data(info.name))
        return [HeldLease(int(row[0]), int(row[1])) for row in rows]

    @repeatable
    def worker_gone(self, id: str) -> Plan[None]:
        yield self._sql.statement("worker_gone", data(id))

    @repeatable
    def workers(self, limit: int) -> Plan[list[WorkerInfo]]:
        rows = yield self._sql.statement("workers", limit, self._sql.now())
        return [_info(row) for row in rows]

    @repeatable
    def cancel_running(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """A lease that ends between the two steps is looked at again: its message waits again, or
        has ended."""
        found: dict[int, Cancelled] = {}
        for _ in range(_TRIES):
            left = [id for id in dict.fromkeys(ids) if id not in found or _leased(found[id])]
            if not left:
                break
            found |= {
                result.id: result for result in (yield from self._cancel.cancel_waiting(left))
            }
            leased = sorted(id for id in left if _leased(found[id]))
            if not leased:
                break
            rows = yield self._sql.statement("leases_to_cancel", leased, self._sql.now())
            if rows:
                yield from self._sql.insert("add_cancel_requests", [tuple(row) for row in rows])
                found |= {int(row[0]): Cancelled(int(row[0]), "requested") for row in rows}
        return [found[id] for id in ids]

    def forget_workers(self, now: int, limit: int) -> Plan[int]:
        """For upkeep: workers that vanished long ago, and requests whose lease has ended."""
        end = now - micros(FORGOTTEN_AFTER)
        old = yield self._sql.statement("old_workers", end, limit)
        if old:
            yield self._sql.statement("delete_workers", [row[0] for row in old], end)
        requests = yield self._sql.statement("old_requests", limit)
        if requests:
            yield self._sql.statement("delete_requests", [(int(r[0]), int(r[1])) for r in requests])
        return len(old) + len(requests)


def _leased(result: Cancelled) -> bool:
    return result.status == "leased"


def _info(row: Row) -> WorkerInfo:
    id, host, pid, version, queues, kinds, slots, used, started, seen, state, name = row
    names = (tuple(json.loads(queues)), tuple(json.loads(kinds)))
    times = (moment(started), moment(seen))
    who = (text(id) or "", text(host) or "", pid, text(version) or "")
    said: Any = state.decode() if isinstance(state, bytes) else state
    return WorkerInfo(*who, *names, slots, used, *times, said, text(name) or "")
