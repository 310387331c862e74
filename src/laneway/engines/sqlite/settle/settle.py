"""The verbs of a lease holder, which check its fence and return a result per message; cancel."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from laneway.contract import Hold
from laneway.engines.sqlite.base import SqliteSql, WriteState, listed
from laneway.engines.sqlite.channels import CountChanges, SqliteChannelRows
from laneway.engines.sqlite.events import SqliteEventOutbox
from laneway.engines.times import micros, moment
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
from laneway.plan import Plan, Row, as_dict

from .end import (
    SqliteDeadRow,
    SqliteEndedKey,
    SqliteNodeEnds,
    SqliteRequeue,
    SqliteSettleEnd,
    by_fence,
)

ERROR_CHARACTERS = 16384
Lease = tuple[int, int]


class SqliteSettle:
    def __init__(
        self,
        sql: SqliteSql,
        rows: SqliteChannelRows,
        ends: SqliteSettleEnd,
        nodes: SqliteNodeEnds,
        outbox: SqliteEventOutbox,
    ) -> None:
        self._sql = sql
        self._rows = rows
        self._ends = ends
        self._nodes = nodes
        self._outbox = outbox

    def complete(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        return self._finish("complete", leases, waited or {}, results or {})

    def end_cancelled(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        return self._finish("cancel", leases, waited or {}, results or {})

    def _finish(
        self, verb: str, leases: Sequence[Row], waited: Mapping[int, int], results: Results
    ) -> Plan[list[Settled]]:
        """The statements themselves select what is leased, so that usually no lease is read."""
        state = yield from self._sql.begin_write(turns=len(leases))
        fences = by_fence(leases)
        changes, lost = CountChanges(), set[Lease]()
        if results:
            yield self._sql.many("keep_results", _kept_rows(results, _DONE[verb], state.now))
        if state.fair:
            yield from self._charge_held(fences, waited, state)
        for fence, ids in fences.items():
            lost |= yield from self._end_claimed(verb, fence, ids, waited, changes, state)
        yield from self._rows.update_counts(changes, state)
        yield self._sql.statement("delete_finished_claims", listed(fences))
        if state.has_flows:
            ended = {lease[0]: lease[1] for lease in leases if (lease[0], lease[1]) not in lost}
            yield from self._nodes.nodes_ended(list(ended), ended, _DONE[verb], state)
        return (yield from self._results(verb, leases, lost, {}, state))

    def _charge_held(
        self, fences: Mapping[int, Sequence[int]], waited: Mapping[int, int], state: WriteState
    ) -> Plan[None]:
        runs: list[tuple[int, int, int | None]] = []
        for fence, ids in fences.items():
            rows = yield self._sql.statement("held_leases", fence, listed(ids))
            runs += [(row[2], fence, waited.get(row[0])) for row in rows]
        yield from self._ends.charge(runs, state)

    def _end_claimed(
        self,
        verb: str,
        fence: int,
        ids: list[int],
        waited: Mapping[int, int],
        changes: CountChanges,
        state: WriteState,
    ) -> Plan[set[Lease]]:
        """Messages of one claim; returns the leases that were lost."""
        text = listed(ids)
        held = yield self._sql.statement("held_by_channel", fence, text)
        for channel_id, count in held:
            changes.add(channel_id, leased=-count)
        lost: set[Lease] = set()
        if sum(count for _, count in held) < len(ids):
            rows = yield self._sql.statement("held_leases", fence, text)
            lost = {(id, fence) for id in ids} - {(id, fence) for id, fence, *_ in rows}
        if held:
            outcome = _DONE[verb]
            if any(id in waited for id in ids):
                rows = listed([id, waited.get(id)] for id in dict.fromkeys(ids))
                yield self._sql.statement("add_waited_history", fence, rows, state.now, outcome)
            else:
                yield self._sql.statement("add_completed_history", fence, text, state.now, outcome)
            yield from self._outbox.add_events(
                outcome, [id for id in ids if (id, fence) not in lost], state
            )
            rows = yield self._sql.statement("held_message_keys", fence, text)
            yield self._sql.statement("delete_held_messages", fence, text)
            yield self._sql.statement("delete_leases", fence, text)
            keys = [SqliteEndedKey(*row) for row in rows]
            yield from self._ends.release_keys(keys, changes, state)
        return lost

    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]:
        state = yield from self._sql.begin_write(turns=len(deferrals))
        released = yield from self._ends.release(deferrals)
        ended = yield from self._ends.ended_leases(released)
        asked = {(d.id, d.fence): d for d in deferrals}
        entries, requeues, dead_rows = [], [], []
        for lease in ended:
            deferral = asked[lease.id, lease.fence]
            failed = _failed(deferral)
            dead = failed and lease.spent + 1 >= lease.max_attempts
            entries.append(_deferral_entry(deferral, failed, dead))
            if dead:
                dead_rows.append(_dead_row(deferral, "max_attempts"))
            else:
                spent = lease.spent + 1 if failed else 0
                due = _next_due(deferral, state.now)
                saved = (deferral.keep, deferral.state, deferral.state_type)
                requeues.append(SqliteRequeue(lease.id, due, True, spent, *saved))
        yield from self._ends.settle(ended, entries, requeues, dead_rows, state)
        statuses = dict.fromkeys((dead_row.id for dead_row in dead_rows), _DEAD)
        return (
            yield from self._results(
                "defer", deferrals, _lost(deferrals, released), statuses, state
            )
        )

    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]:
        state = yield from self._sql.begin_write(turns=len(failures))
        released = yield from self._ends.release(failures)
        ended = yield from self._ends.ended_leases(released)
        asked = {(f.id, f.fence): f for f in failures}
        dead_rows = [_dead_row(f, f.reason) for f in (asked[x.id, x.fence] for x in ended)]
        entries = [
            (lease.id, lease.fence, "failed", 0, 1, *row[1:4], asked[lease.id, lease.fence].waited)
            for lease, row in zip(ended, dead_rows, strict=True)
        ]
        yield from self._ends.settle(ended, entries, [], dead_rows, state)
        return (yield from self._results("fail", failures, _lost(failures, released), {}, state))

    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        state = yield from self._sql.begin_write(turns=len(returns))
        released = yield from self._ends.release(returns)
        ended = yield from self._ends.ended_leases(released)
        delays = {(r.id, r.fence): r.delay for r in returns}
        entries, requeues = [], []
        for lease in ended:
            delay = delays[lease.id, lease.fence]
            due = state.now + micros(delay) if delay else lease.due
            entries.append((lease.id, lease.fence, "given_back", 0, 0, None, None, None, None))
            requeues.append(SqliteRequeue(lease.id, due, False, lease.spent))
        yield from self._ends.settle(ended, entries, requeues, [], state)
        return (yield from self._results("give_back", returns, _lost(returns, released), {}, state))

    def extend(
        self, extensions: Sequence[Extension], notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Settled]]:
        state = yield from self._sql.begin_write()
        ends = [(e.id, e.fence, state.now + micros(e.length)) for e in extensions]
        held = yield from self._extend(ends)
        yield from self._note_progress(notes, state)
        until = {(id, fence): moment(end) for id, fence, _, end, *_ in held}
        results = yield from self._results("extend", extensions, _lost(extensions, held), {}, state)
        return [a._replace(until=until.get((a.id, a.fence))) for a in results]

    def hold(
        self, leases: Sequence[Row], span: timedelta, notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Hold]]:
        """Never \"locked\": this client holds the only write lock."""
        state = yield from self._sql.begin_write()
        end = state.now + micros(span)
        held = yield from self._extend([(lease[0], lease[1], end) for lease in leases])
        yield from self._note_progress(notes, state)
        lost = _lost(leases, held)
        return ["lost" if (lease[0], lease[1]) in lost else "extended" for lease in leases]

    def _extend(self, ends: Sequence[tuple[int, int, int]]) -> Plan[list[Row]]:
        """Returns the leases that are still held, as they are now."""
        yield self._sql.many("extend", ends)
        held: list[Row] = []
        for fence, ids in by_fence(ends).items():
            held += yield self._sql.statement("held_leases", fence, listed(ids))
        return held

    def _note_progress(self, notes: Sequence[ProgressNote], state: WriteState) -> Plan[None]:
        if notes:
            yield self._sql.many("note_progress", [(*note, state.now) for note in notes])

    def progress(self, ids: Sequence[int]) -> Plan[list[Progress | None]]:
        rows = yield self._sql.read_outside("progress", listed(ids))
        found = {
            id: Progress(share, note, moment(at), fence) for id, share, note, at, fence in rows
        }
        return [found.get(id) for id in ids]

    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        state = yield from self._sql.begin_write()
        rows = yield self._sql.statement("once", queue, key, state.now + micros(keep), state.now)
        if rows:
            yield self._sql.statement("delete_expired_once", state.now)
        return bool(rows)

    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        state = yield from self._sql.begin_write(turns=len(ids))
        cancelled = yield from self._ends.end_waiting(ids, "cancelled", state)
        rows = yield self._sql.statement("message_states", listed(ids))
        found: dict[int, Any] = as_dict(rows)
        found |= dict.fromkeys(cancelled, "cancelled")
        return [Cancelled(id, found.get(id, "absent")) for id in ids]

    def _results(
        self,
        verb: str,
        items: Sequence[Any],
        lost: Collection[Lease],
        statuses: Mapping[int, SettleStatus],
        state: WriteState,
    ) -> Plan[list[Settled]]:
        """One result for each item, in order; lost leases are also written to the history."""
        done: SettleStatus = _DONE[verb]
        if lost:
            yield self._sql.statement("add_stale_history", listed(lost), verb, state.now)
        elif not statuses:
            return [Settled(item[0], item[1], done) for item in items]
        return [
            Settled(*lease, "lost" if lease in lost else statuses.get(lease[0], done))
            for lease in ((item[0], item[1]) for item in items)
        ]


def _kept_rows(results: Results, outcome: str, now: int) -> list[tuple[Any, ...]]:
    return [
        (id, fence, now, now + micros(kept.keep), outcome, kept.content_type, kept.payload)
        for (id, fence), kept in results.items()
    ]


def _lost(items: Sequence[Any], held: Iterable[Sequence[Any]]) -> list[Lease]:
    """Leases of the items that are not held, each once."""
    ours = {(id, fence) for id, fence, *_ in held}
    asked = dict.fromkeys((item[0], item[1]) for item in items)
    return [lease for lease in asked if lease not in ours]


_DEAD: SettleStatus = "dead"
_DONE: dict[str, SettleStatus] = {
    "complete": "completed",
    "cancel": "cancelled",
    "defer": "deferred",
    "fail": "failed",
    "extend": "extended",
    "give_back": "given_back",
}


def _failed(deferral: Deferral) -> bool:
    return any(x is not None for x in (deferral.reason, deferral.error_type, deferral.error))


def _next_due(deferral: Deferral, now: int) -> int:
    if deferral.at is not None:
        return micros(deferral.at)
    return now if deferral.delay is None else now + micros(deferral.delay)


def _deferral_entry(deferral: Deferral, failed: bool, dead: bool) -> tuple[Any, ...]:
    outcome = "retried" if failed else "deferred"
    reason = "max_attempts" if dead else deferral.reason
    error = _cut(deferral.error)
    why = (reason, deferral.error_type, error)
    return (deferral.id, deferral.fence, outcome, 0, dead, *why, deferral.waited)


def _dead_row(item: Deferral | Failure, reason: str) -> SqliteDeadRow:
    return SqliteDeadRow(item.id, reason, item.error_type, _cut(item.error), item.traceback)


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:ERROR_CHARACTERS]
