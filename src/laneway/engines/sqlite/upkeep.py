"""upkeep: periodic maintenance, by whichever client runs it."""

from collections.abc import Sequence

from laneway.model import UpkeepReport
from laneway.plan import Plan

from .base import SqliteSql, WriteState, listed
from .operate.control import SqliteWorkers
from .operate.counts import SqliteCounts, SqliteKindCounts
from .operate.minutes import SqliteMinutes
from .settle.end import (
    SqliteDeadRow,
    SqliteEndedLease,
    SqliteNodeEnds,
    SqliteRequeue,
    SqliteSettleEnd,
)
from .shared_limits import SqliteSharedLimits

_LIMIT = 1000
"""Rows of each kind in one transaction."""
_STEPS = 10
_LOST = ("max_attempts", "LeaseExpired", "the lease ran out before the work was settled")


class SqliteUpkeep:
    def __init__(
        self,
        sql: SqliteSql,
        kind_counts: SqliteKindCounts,
        minutes: SqliteMinutes,
        counts: SqliteCounts,
        ends: SqliteSettleEnd,
        workers: SqliteWorkers,
        nodes: SqliteNodeEnds,
        limits: SqliteSharedLimits,
    ) -> None:
        self._sql = sql
        self._kind_counts = kind_counts
        self._minutes = minutes
        self._counts = counts
        self._ends = ends
        self._workers = workers
        self._nodes = nodes
        self._limits = limits

    def upkeep(self) -> Plan[UpkeepReport]:
        """With nothing to do it writes nothing and waits for no lock. Much work is split into
        several short transactions."""
        done = UpkeepReport(ran=True)
        for _ in range(_STEPS):
            rows = yield self._sql.read_outside("upkeep_needed", self._sql.now())
            if not any(rows[0]):
                break
            step = yield from self._step(*rows[0])
            done = UpkeepReport(
                True, *(a + b for a, b in zip(_counts(done), _counts(step), strict=True))
            )
        yield from self._kind_counts.recount_kinds()
        folded = yield from self._minutes.fold()
        yield from self._counts.count_channels()
        yield from self._minutes.note_depths(folded)
        return done

    def _step(
        self,
        expire: bool,
        lapse: bool,
        keys: bool,
        closing: bool,
        mail: bool,
        control: bool,
        workers: bool,
        history: bool,
        results: bool,
        undecided: bool,
        flows: bool,
        limits: bool,
    ) -> Plan[UpkeepReport]:
        state = yield from self._sql.begin_write(turns=2 * _LIMIT)
        expired = buried = lapsed = tidied = 0
        if expire:
            expired, buried = yield from self._expire(state)
        if lapse:
            lapsed = yield from self._lapse(state)
        if keys:
            tidied += len((yield self._sql.statement("delete_expired_keys", state.now, _LIMIT)))
        if closing or expired or lapsed:
            tidied += len((yield self._sql.statement("delete_removed_channels", _LIMIT)))
        if mail:
            tidied += len((yield self._sql.statement("delete_expired_mail", state.now, _LIMIT)))
            yield self._sql.statement("delete_expired_listeners", state.now, _LIMIT)
        if control:
            yield self._sql.statement("delete_ended_pauses", state.now, _LIMIT)
            yield self._sql.statement("resume_timed_channels", state.now, _LIMIT)
            tidied += len((yield self._sql.statement("delete_old_audit", state.now, _LIMIT)))
        if workers:
            tidied += yield from self._workers.forget_workers(state.now, _LIMIT)
        if results:
            tidied += len((yield self._sql.statement("delete_expired_results", state.now, _LIMIT)))
            tidied += len((yield self._sql.statement("delete_old_progress", state.now, _LIMIT)))
        if undecided:
            tidied += yield from self._nodes.decide_left(state)
        if flows:
            tidied += yield from self._nodes.forget_flows(state, _LIMIT)
        if limits:
            yield from self._limits.forget_limits(state.now, _LIMIT)
        if history:
            tidied += len((yield self._sql.statement("delete_old_history", state.now, _LIMIT)))
        return UpkeepReport(True, expired, buried, lapsed, tidied)

    def _expire(self, state: WriteState) -> Plan[tuple[int, int]]:
        """Puts messages of expired leases back into their channels, with a longer delay each time.
        Those that have used up max_attempts become dead letters here, before they can be claimed
        again."""
        claims = yield self._sql.statement("expired_claims", state.now, _LIMIT)
        fences = listed(row[0] for row in claims)
        over = yield self._sql.statement("expired_leases", fences, state.now, _LIMIT)
        if (
            len(over) == _LIMIT
        ):  # of the other claims nothing was ended: all their leases would be read
            fences = listed({row[1] for row in over})
        yield self._sql.statement("note_expired_limits", listed(row[0] for row in over), state.now)
        released = yield from self._ends.release(over)
        ended = yield from self._ends.ended_leases(released)
        dead_rows = [SqliteDeadRow(f.id, *_LOST) for f in ended if f.spent + 1 >= f.max_attempts]
        dead = {dead_row.id for dead_row in dead_rows}
        entries = [_entry(lease, lease.id in dead) for lease in ended]
        requeues = [_later(lease, state) for lease in ended if lease.id not in dead]
        yield from self._ends.settle(ended, entries, requeues, dead_rows, state)
        yield self._sql.statement("delete_finished_claims", fences)
        yield self._sql.statement("update_claim_ends", fences)
        return len(ended), len(dead_rows)

    def _lapse(self, state: WriteState) -> Plan[int]:
        rows = yield self._sql.statement("lapsed_messages", state.now, _LIMIT)
        ids = [row[0] for row in rows]
        later = state._replace(turn=state.turn + _LIMIT)
        return len((yield from self._ends.end_waiting(ids, "lapsed", later)))


def _counts(report: UpkeepReport) -> tuple[int, ...]:
    return report.expired, report.buried, report.lapsed, report.tidied


def _entry(lease: SqliteEndedLease, dead: bool) -> Sequence[object]:
    reason = _LOST[0] if dead else None
    return (lease.id, lease.fence, "expired", 0, dead, reason, None, None)


def _later(lease: SqliteEndedLease, state: WriteState) -> SqliteRequeue:
    wait = min(state.backoff_max, state.backoff_initial * 2 ** min(lease.spent, 40))
    return SqliteRequeue(lease.id, state.now + wait, True, lease.spent + 1)
