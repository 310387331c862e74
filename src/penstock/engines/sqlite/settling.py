"""The verbs of a lease holder, and cancel. Each carries the fence and answers per message."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from penstock.contract import Hold
from penstock.model import (
    Cancelled,
    Deferral,
    Extension,
    Failure,
    Return,
    Settled,
    SettleStatus,
)
from penstock.plan import Plan, Row

from .base import State, listed
from .ending import Back, Ending, Grave, Key, by_fence
from .moves import Moves
from .times import micros, moment

ERROR_CHARACTERS = 16384
Lease = tuple[int, int]


class Settling(Ending):
    def complete(self, leases: Sequence[Row]) -> Plan[list[Settled]]:
        """The statements pick out what is held, so that the common case reads no row of it."""
        state = yield from self._begin(turns=len(leases))
        fences = by_fence(leases)
        moves, lost = Moves(), set[Lease]()
        for fence, ids in fences.items():
            lost |= yield from self._complete(fence, ids, moves, state)
        yield from self._move(moves, state)
        yield self._say("claims_done", listed(fences))
        return (yield from self._answers("complete", leases, lost, {}, state))

    def _complete(self, fence: int, ids: list[int], moves: Moves, state: State) -> Plan[set[Lease]]:
        """What one claim took, or a part of it; answers what was lost."""
        text = listed(ids)
        held = yield self._say("lease_channels", fence, text)
        for channel_id, count in held:
            moves.add(channel_id, leased=-count)
        lost: set[Lease] = set()
        if sum(row[1] for row in held) < len(ids):
            rows = yield self._say("leases_of", fence, text)
            lost = {(id, fence) for id in ids} - {(row[0], row[1]) for row in rows}
        if held:
            yield self._say("note_completed", fence, text, state.now)
            yield from self._tell("completed", [id for id in ids if (id, fence) not in lost], state)
            rows = yield self._say("keys_of_leases", fence, text)
            yield from self._free_keys([Key(*row) for row in rows], state.now)
            yield self._say("end_leased", fence, text)
            yield self._say("release", fence, text)
        return lost

    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]:
        state = yield from self._begin(turns=len(deferrals))
        released = yield from self._release(deferrals)
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
        statuses = dict.fromkeys((grave.id for grave in graves), _DEAD)
        return (
            yield from self._answers(
                "defer", deferrals, _lost(deferrals, released), statuses, state
            )
        )

    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]:
        state = yield from self._begin(turns=len(failures))
        released = yield from self._release(failures)
        fates = yield from self._fates(released)
        asked = {(f.id, f.fence): f for f in failures}
        graves = [_grave(f, f.reason) for f in (asked[x.id, x.fence] for x in fates)]
        notes = [
            (fate.id, fate.fence, "failed", 0, 1, *grave[1:])
            for fate, grave in zip(fates, graves, strict=True)
        ]
        yield from self._settle(fates, notes, [], graves, state)
        return (yield from self._answers("fail", failures, _lost(failures, released), {}, state))

    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        state = yield from self._begin(turns=len(returns))
        released = yield from self._release(returns)
        fates = yield from self._fates(released)
        delays = {(r.id, r.fence): r.delay for r in returns}
        notes, backs = [], []
        for fate in fates:
            delay = delays[fate.id, fate.fence]
            due = state.now + micros(delay) if delay else fate.due
            notes.append((fate.id, fate.fence, "given_back", 0, 0, None, None, None))
            backs.append(Back(fate.id, due, False, fate.spent))
        yield from self._settle(fates, notes, backs, [], state)
        return (yield from self._answers("give_back", returns, _lost(returns, released), {}, state))

    def extend(self, extensions: Sequence[Extension]) -> Plan[list[Settled]]:
        state = yield from self._begin()
        ends = [(e.id, e.fence, state.now + micros(e.length)) for e in extensions]
        held = yield from self._extend(ends)
        until = {(row[0], row[1]): moment(row[3]) for row in held}
        answers = yield from self._answers("extend", extensions, _lost(extensions, held), {}, state)
        return [a._replace(until=until.get((a.id, a.fence))) for a in answers]

    def hold(self, leases: Sequence[Row], span: timedelta) -> Plan[list[Hold]]:
        """There is one writer, and it is us: nothing is locked."""
        state = yield from self._begin()
        end = state.now + micros(span)
        held = yield from self._extend([(lease[0], lease[1], end) for lease in leases])
        lost = _lost(leases, held)
        return ["lost" if (lease[0], lease[1]) in lost else "extended" for lease in leases]

    def _extend(self, ends: Sequence[tuple[int, int, int]]) -> Plan[list[Row]]:
        """Answers the leases that are held, as they are now."""
        yield self._each("extend", ends)
        held: list[Row] = []
        for fence, ids in by_fence(ends).items():
            held += yield self._say("leases_of", fence, listed(ids))
        return held

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
        items: Sequence[Any],
        lost: Collection[Lease],
        statuses: Mapping[int, SettleStatus],
        state: State,
    ) -> Plan[list[Settled]]:
        """One for each item, in their order; who came too late is told so, and noted."""
        done: SettleStatus = _DONE[verb]
        if lost:
            yield self._say("note_stale", listed(lost), verb, state.now)
        elif not statuses:
            return [Settled(item[0], item[1], done) for item in items]
        return [
            Settled(*lease, "lost" if lease in lost else statuses.get(lease[0], done))
            for lease in ((item[0], item[1]) for item in items)
        ]


def _lost(items: Sequence[Any], held: Iterable[Sequence[Any]]) -> list[Lease]:
    """Those of the items that were not held, each once."""
    ours = {(row[0], row[1]) for row in held}
    asked = dict.fromkeys((item[0], item[1]) for item in items)
    return [lease for lease in asked if lease not in ours]


_DEAD: SettleStatus = "dead"
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
