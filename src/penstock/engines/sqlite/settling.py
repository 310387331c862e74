"""The verbs of a lease holder, and cancel. Each carries the fence and answers per message."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from penstock.model import (
    Cancelled,
    Deferral,
    Extension,
    Failure,
    Held,
    Return,
    Settled,
    SettleStatus,
)
from penstock.plan import Plan

from .base import State, listed
from .ending import Back, Ending, Grave, by_fence
from .moves import Moves
from .times import micros, moment

ERROR_CHARACTERS = 16384
Lease = tuple[int, int]


class Settling(Ending):
    def complete(self, leases: Sequence[Held]) -> Plan[list[Settled]]:
        state = yield from self._begin(turns=len(leases))
        released = yield from self._release(leases)
        if released:
            fences = by_fence((lease.id, lease.fence) for lease in released)
            for fence, ids in fences.items():
                yield self._say("note_completed", fence, listed(ids), state.now)
            yield from self._end([lease.id for lease in released], state.now)
            moves = Moves()
            for lease in released:
                moves.add(lease.channel_id, leased=-1)
            yield from self._move(moves, state)
            yield self._say("claims_done", listed(fences))
        return (yield from self._answers("complete", leases, released, {}, state))

    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]:
        state = yield from self._begin(turns=len(deferrals))
        released = yield from self._release((d.id, d.fence) for d in deferrals)
        fates = yield from self._fates(released)
        asked = {(d.id, d.fence): d for d in deferrals}
        notes, backs, graves = [], [], []
        for fate in fates:
            deferral = asked[fate.id, fate.fence]
            failed = _failed(deferral)
            dead = failed and fate.spent + 1 >= fate.max_attempts
            notes.append(_deferral_note(deferral, failed, dead))
            if dead:
                graves.append(_grave(deferral, "max_attempts"))
            else:
                spent = fate.spent + 1 if failed else 0
                due = _next_due(deferral, state.now)
                saved = (deferral.keep, deferral.state, deferral.state_type)
                backs.append(Back(fate.id, due, True, spent, *saved))
        yield from self._settle(fates, notes, backs, graves, state)
        dead_ids = {grave.id for grave in graves}
        statuses = {f.id: "dead" if f.id in dead_ids else "deferred" for f in fates}
        return (yield from self._answers("defer", deferrals, released, statuses, state))

    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]:
        state = yield from self._begin(turns=len(failures))
        released = yield from self._release((f.id, f.fence) for f in failures)
        fates = yield from self._fates(released)
        asked = {(f.id, f.fence): f for f in failures}
        graves = [_grave(f, f.reason) for f in (asked[x.id, x.fence] for x in fates)]
        notes = [
            (fate.id, fate.fence, "failed", 0, 1, *grave[1:])
            for fate, grave in zip(fates, graves, strict=True)
        ]
        yield from self._settle(fates, notes, [], graves, state)
        return (yield from self._answers("fail", failures, released, {}, state))

    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        state = yield from self._begin(turns=len(returns))
        released = yield from self._release((r.id, r.fence) for r in returns)
        fates = yield from self._fates(released)
        delays = {(r.id, r.fence): r.delay for r in returns}
        notes, backs = [], []
        for fate in fates:
            delay = delays[fate.id, fate.fence]
            due = state.now + micros(delay) if delay else fate.due
            notes.append((fate.id, fate.fence, "given_back", 0, 0, None, None, None))
            backs.append(Back(fate.id, due, False, fate.spent))
        yield from self._settle(fates, notes, backs, [], state)
        return (yield from self._answers("give_back", returns, released, {}, state))

    def extend(self, extensions: Sequence[Extension]) -> Plan[list[Settled]]:
        state = yield from self._begin()
        ends = [(e.id, e.fence, state.now + micros(e.length)) for e in extensions]
        yield self._each("extend", ends)
        held: list[Any] = []
        for fence, ids in by_fence((e.id, e.fence) for e in extensions).items():
            held += yield self._say("leases_of", fence, listed(ids))
        until = {(row[0], row[1]): moment(row[3]) for row in held}
        answers = yield from self._answers("extend", extensions, held, {}, state)
        return [a._replace(until=until.get((a.id, a.fence))) for a in answers]

    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        state = yield from self._begin()
        rows = yield self._say("once", queue, key, state.now + micros(keep), state.now)
        if rows:
            yield self._say("sweep_done", state.now)
        return bool(rows)

    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        state = yield from self._begin(turns=len(ids))
        cancelled = yield from self._end_waiting(ids, "cancelled", state)
        rows = yield self._say("whereabouts", listed(ids))
        found: dict[int, Any] = {row[0]: row[1] for row in rows}
        found |= dict.fromkeys(cancelled, "cancelled")
        return [Cancelled(id, found.get(id, "absent")) for id in ids]

    def _answers(
        self,
        verb: str,
        items: Iterable[Any],
        held: Sequence[Sequence[Any]],
        statuses: dict[int, str],
        state: State,
    ) -> Plan[list[Settled]]:
        """One for each item, in their order; who came too late is told so, and noted."""
        ours = {(row[0], row[1]) for row in held}
        lost = dict.fromkeys((i.id, i.fence) for i in items if (i.id, i.fence) not in ours)
        if lost:
            yield self._say("note_stale", listed(lost), verb, state.now)
        done: SettleStatus = _DONE[verb]
        return [
            Settled(
                item.id,
                item.fence,
                "lost" if (item.id, item.fence) in lost else statuses.get(item.id, done),  # type: ignore[arg-type]
            )
            for item in items
        ]


_DONE: dict[str, SettleStatus] = {
    "complete": "completed",
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


def _deferral_note(deferral: Deferral, failed: bool, dead: bool) -> tuple[Any, ...]:
    outcome = "retried" if failed else "deferred"
    reason = "max_attempts" if dead else deferral.reason
    error = _cut(deferral.error)
    return (deferral.id, deferral.fence, outcome, 0, dead, reason, deferral.error_type, error)


def _grave(item: Deferral | Failure, reason: str) -> Grave:
    return Grave(item.id, reason, item.error_type, _cut(item.error))


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:ERROR_CHARACTERS]
