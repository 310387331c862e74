"""complete, defer, fail and give_back: how a lease holder ends its leases; and cancel."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from laneway.engines.mysql.append import WakeRow
from laneway.engines.mysql.base import MysqlChannelLocks, MysqlSql, data, repeatable
from laneway.engines.mysql.events import MysqlEventOutbox
from laneway.engines.mysql.flows_release import MysqlNodeEnds
from laneway.engines.times import micros
from laneway.model import Cancelled, Deferral, Failure, Results, Return, Settled, SettleStatus
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Row

from .end import (
    Cause,
    CompletedLease,
    EndedLease,
    HistoryRow,
    LostLease,
    MysqlBehind,
    MysqlRequeue,
    MysqlSettleEnd,
    Requeue,
    SlotAndKey,
    ended_key,
)
from .lease import LeaseKey, MysqlLeases, MysqlResults, by_lease

_LARGE_STATE = 256 * 1024
_IDS_BESIDE_LARGE = 100


class WaitingMessage(NamedTuple):
    """A row of waiting_messages."""

    id: int
    channel_id: bytes
    queue: bytes
    channel: bytes
    kind: bytes
    key: bytes | None
    key_window: int | None
    priority: int
    attempt: int
    due: int
    published_at: int
    first_published_at: int
    payload_size: int
    now: int
    history: bytes
    by_kind: int
    flow_id: int | None


class MysqlCancel:
    """cancel, and the end of messages that lapse: waiting messages end without an attempt.

    Invariant: a message is either claimed or ended here, never both, because this locks the
    message's channel as a claim does."""

    def __init__(
        self,
        sql: MysqlSql,
        locks: MysqlChannelLocks,
        outbox: MysqlEventOutbox,
        results: MysqlResults,
        ends: MysqlSettleEnd,
        nodes: MysqlNodeEnds,
        behind: MysqlBehind,
    ) -> None:
        self._sql = sql
        self._locks = locks
        self._outbox = outbox
        self._results = results
        self._ends = ends
        self._nodes = nodes
        self._behind = behind

    @repeatable
    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """A leased message belongs to its holder and stays."""
        return (yield from self.cancel_waiting(ids))

    def cancel_waiting(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        wanted = sorted(set(ids))
        rows = yield self._sql.statement("message_channels", wanted)
        yield from self._locks.lock_channels([(queue, name) for _, _, queue, name, *_ in rows])
        ended = yield from self.end_waiting(wanted, b"cancelled")
        status: dict[int, Any] = dict.fromkeys(ended, "cancelled")
        if len(status) < len(wanted):
            rows = yield self._sql.statement(
                "message_states", [id for id in wanted if id not in status]
            )
            status |= {int(id): _text(state) for id, state in rows}
        return [Cancelled(id, status.get(id, "absent")) for id in ids]

    def end_waiting(self, ids: Sequence[int], outcome: bytes) -> Plan[list[int]]:
        """Ends those that are not leased. The caller has locked their channels."""
        rows = yield self._sql.statement("waiting_messages", ids, self._sql.now())
        ending = [WaitingMessage(*row) for row in rows]
        keys = [k for m in ending if (k := ended_key(m.id, m.queue, m.key, m.key_window))]
        if keys:
            # Read again: one that waited behind another may have been started meanwhile.
            keys = yield from self._behind.lock_keys(keys)
            rows = yield self._sql.statement("waiting_messages", ids, self._sql.now())
            ending = [WaitingMessage(*row) for row in rows]
        if not ending:
            return []
        now, done = ending[0].now, [message.id for message in ending]
        yield from self._outbox.add_message_events(outcome.decode(), done)
        yield from self._results.keep_ended(done, outcome, now)
        yield from self.leave_lanes(ending)
        yield self._sql.statement("delete_messages", done)
        if ending[0].history == b"all":
            yield from self._sql.insert("add_history", [_history_row(m, outcome) for m in ending])
        yield from self._sql.insert("add_wakes", [_wake(message) for message in ending])
        yield from self._ends.release_keys([key for key in keys if key.id in done], now)
        nodes = [message.id for message in ending if message.flow_id is not None]
        yield from self._nodes.nodes_ended(nodes, {}, outcome.decode(), now)
        return done

    def leave_lanes(self, messages: Sequence[WaitingMessage]) -> Plan[None]:
        """Claims by kind are not to pass over what waits no more, or at another time."""
        if any(m.by_kind for m in messages):
            yield self._sql.statement("delete_kind_messages", [m.id for m in messages])


def _history_row(m: WaitingMessage, outcome: bytes) -> HistoryRow:
    times = (m.first_published_at, m.published_at, m.due, None, m.now, m.payload_size)
    what = (True, False, m.priority, m.queue, m.channel, m.kind, None, outcome)
    return (m.id, None, m.attempt, *times, *what, None, None, None, None)


def _wake(m: WaitingMessage) -> WakeRow:
    """One message fewer, from just after the time at which its own wake counts it."""
    at = m.due + 1 if m.due > m.now else m.now
    return at, m.channel_id, m.due, m.id, -1, 0, m.priority, False, m.queue, m.channel


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


ERROR_CHARACTERS = 16 * 1024


class MysqlSettle(MysqlLeases):
    """complete, defer, fail and give_back: how a lease holder ends its leases.

    Invariant: only the holder of the lease with this fence ends it. Every verb carries the fence
    and returns a status for each message. Locks leases in id order."""

    def __init__(
        self,
        sql: MysqlSql,
        ends: MysqlSettleEnd,
        outbox: MysqlEventOutbox,
        nodes: MysqlNodeEnds,
        requeue: MysqlRequeue,
        results: MysqlResults,
    ) -> None:
        super().__init__(sql, ends)
        self._outbox = outbox
        self._nodes = nodes
        self._requeue = requeue
        self._results = results

    @repeatable
    def complete(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        return (yield from self._finish("completed", leases, waited or {}, results or {}))

    @repeatable
    def end_cancelled(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        return (yield from self._finish("cancelled", leases, waited or {}, results or {}))

    def _finish(
        self,
        outcome: SettleStatus,
        leases: Sequence[Row],
        waited: Mapping[int, int],
        results: Results,
    ) -> Plan[list[Settled]]:
        items = by_lease(leases)
        rows = yield from self.lock_leases("lock_leases", list(items))
        held = [CompletedLease.read(row[0]) for row in rows]
        kept = {(lease.id, lease.fence) for lease in held}
        if ours := {key: result for key, result in results.items() if key in kept}:
            yield from self._results.keep_results(ours, outcome, held[0].now)
        if held:
            yield from self._end_messages(outcome, held, waited)
        lost = [LostLease(*key) for key in items if key not in kept]
        yield from self._ends.add_stale_history(
            lost, "complete" if outcome == "completed" else "cancel"
        )
        return [
            Settled(*lease, outcome if lease in kept else "lost")
            for lease in ((row[Column.ID], row[Column.FENCE]) for row in leases)
        ]

    def _end_messages(
        self, outcome: str, held: Sequence[CompletedLease], waited: Mapping[int, int]
    ) -> Plan[None]:
        now, ids = held[0].now, [lease.id for lease in held]
        yield from self._outbox.add_message_events(outcome, ids)
        if held[0].history == b"all":
            if any(id in waited for id in ids):
                pairs = [(id, waited.get(id)) for id in ids]
                yield self._sql.statement("add_waited_history", pairs, now, outcome.encode())
            else:
                yield self._sql.statement("add_completed_history", ids, now, outcome.encode())
        ties = yield from self._slots_and_keys([lease.id for lease in held if lease.tied])
        yield self._sql.statement("delete_leased_messages", ids)
        yield from self._ends.release_keys([key for tie in ties if (key := tie.ended_key)], now)
        freed = [
            (tie.channel_ref, int(tie.claimed_at) + 1000 * (waited.get(tie.id) or 0))
            for tie in ties
            if tie.counted
        ]
        yield from self._ends.free_slots(freed, now)
        nodes = {lease.id: lease.fence for lease in held if lease.node}
        yield from self._nodes.nodes_ended(list(nodes), nodes, outcome, now)

    def _slots_and_keys(self, ids: Sequence[int]) -> Plan[list[SlotAndKey]]:
        if not ids:
            return []
        rows = yield self._sql.statement("lease_slots_and_keys", ids)
        return [SlotAndKey(*row) for row in rows]

    @repeatable
    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]:
        """Without an error it is progress: the count of failed attempts starts again at 0. With an
        error it is a failed attempt, and the one that uses up max_attempts makes a dead letter."""
        items = by_lease(deferrals)
        held = yield from self._lock_with_messages(items)
        status: dict[LeaseKey, SettleStatus] = {}
        entries, requeues, dying = [], [], []
        for lease in held:
            item = items[lease.id, lease.fence]
            failed = any(x is not None for x in (item.reason, item.error_type, item.error))
            dead = failed and lease.spent + 1 >= lease.max_attempts
            reason = b"max_attempts" if dead else data(item.reason)
            error = data(item.error_type), _cut(item.error)
            if lease.history == b"all" or (failed and lease.history == b"failures"):
                outcome = b"retried" if failed else b"deferred"
                row = lease.history_row(outcome, dead=dead, reason=reason, error=error)
                entries.append(lease.waited(row, item.waited))
            if dead:
                dying.append((lease, Cause(b"max_attempts", *error, data(item.traceback))))
            else:
                due = lease.now + micros(item.delay) if item.delay is not None else lease.now
                due = due if item.at is None else micros(item.at)
                requeues.append(Requeue(lease, due, True, failed))
            status[lease.id, lease.fence] = "dead" if dead else "deferred"
        retried = {lease.id for lease, _ in dying} | {r.lease.id for r in requeues if r.fails}
        deferred = [lease.id for lease in held if lease.id not in retried]
        yield from self._outbox.add_message_events("deferred", deferred)
        yield from self._outbox.add_message_events("retried", sorted(retried))
        yield from self._end_leases(held, entries, _began(held, items))
        yield from self._save_states([items[r.lease.id, r.lease.fence] for r in requeues])
        yield from self._requeue.requeue(requeues)
        if dying:
            yield from self._requeue.add_dead_letters(dying, held[0].now)
        return (yield from self._settled(deferrals, status, "defer"))

    @repeatable
    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]:
        items = by_lease(failures)
        held = yield from self._lock_with_messages(items)
        entries, dying = [], []
        for lease in held:
            item = items[lease.id, lease.fence]
            error = data(item.error_type), _cut(item.error)
            cause = Cause(item.reason.encode(), *error, data(item.traceback))
            dying.append((lease, cause))
            if lease.history != b"none":
                row = lease.history_row(b"failed", dead=True, reason=cause.reason, error=error)
                entries.append(lease.waited(row, item.waited))
        yield from self._outbox.add_message_events("failed", [lease.id for lease in held])
        yield from self._end_leases(held, entries, _began(held, items))
        if dying:
            yield from self._requeue.add_dead_letters(dying, held[0].now)
        status: dict[LeaseKey, SettleStatus] = {(x.id, x.fence): "failed" for x in held}
        return (yield from self._settled(failures, status, "fail"))

    @repeatable
    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        """The work was not begun: the message returns to its old position, or later if delayed, and
        the attempt is not counted."""
        items = by_lease(returns)
        held = yield from self._lock_with_messages(items)
        entries = [lease.history_row(b"given_back") for lease in held if lease.history == b"all"]
        yield from self._outbox.add_message_events("given_back", [lease.id for lease in held])
        yield from self._end_leases(held, entries, {x.id: None for x in held})
        yield from self._requeue.requeue([_given_back(x, items[x.id, x.fence]) for x in held])
        status: dict[LeaseKey, SettleStatus] = {(x.id, x.fence): "given_back" for x in held}
        return (yield from self._settled(returns, status, "give_back"))

    def _lock_with_messages(self, items: dict[LeaseKey, Any]) -> Plan[list[EndedLease]]:
        rows = yield from self.lock_leases("lock_leases_and_messages", list(items))
        return [EndedLease(*row) for row in rows]

    def _end_leases(
        self,
        held: Sequence[EndedLease],
        entries: Sequence[Any],
        began: Mapping[int, int | None],
    ) -> Plan[None]:
        """Only the leases: their messages wait again or become dead letters. ``began``: when their
        handlers did, None if they did not."""
        if not held:
            return
        yield from self._sql.insert("add_history", entries)
        yield self._sql.statement("delete_leases", [lease.id for lease in held])
        freed = [(lease.channel_ref, began[lease.id]) for lease in held if lease.counted]
        yield from self._ends.free_slots(freed, held[0].now)

    def _save_states(self, deferrals: Sequence[Deferral]) -> Plan[None]:
        groups: dict[tuple[bytes | None, str | None], list[int]] = defaultdict(list)
        yield from self._sql.check_fits(item.state for item in deferrals if not item.keep)
        for item in deferrals:
            if not item.keep:
                groups[item.state, item.state_type].append(item.id)
        for (state, state_type), ids in groups.items():
            # The ids of a batch do not fit beside a state that fills the statement.
            step = len(ids) if len(state or b"") < _LARGE_STATE else _IDS_BESIDE_LARGE
            for start in range(0, len(ids), step):
                some = ids[start : start + step]
                yield self._sql.statement("save_state", some, state, data(state_type))

    def _settled(
        self, items: Sequence[Any], status: dict[LeaseKey, SettleStatus], verb: str
    ) -> Plan[list[Settled]]:
        lost = [LostLease(i.id, i.fence) for i in items if (i.id, i.fence) not in status]
        yield from self._ends.add_stale_history(lost, verb)
        return [Settled(i.id, i.fence, status.get((i.id, i.fence), "lost")) for i in items]


def _began(held: Sequence[EndedLease], items: Mapping[LeaseKey, Any]) -> dict[int, int | None]:
    return {x.id: x.claimed_at + 1000 * (items[x.id, x.fence].waited or 0) for x in held}


def _given_back(lease: EndedLease, item: Return) -> Requeue:
    due = lease.now + micros(item.delay) if item.delay else lease.due
    return Requeue(lease, due, False, False)


def _cut(error: str | None) -> bytes | None:
    return None if error is None else error[:ERROR_CHARACTERS].encode()
