"""The verbs of a lease holder. Each carries the fence and answers per message.

Keeps: only the holder of the lease with this fence ends it. Locks leases in id order.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

from penstock.contract import Hold
from penstock.model import Deferral, Extension, Failure, Return, Settled, SettleStatus
from penstock.plan import Plan, Row

from .ending import Lost
from .holding import FullyHeld, Held, Tie
from .locking import Locking
from .names import data
from .repeating import repeatable
from .returning import Cause, Comeback, Returning
from .times import length, micros, moment

Item = TypeVar("Item", bound=Row)
Key = tuple[int, int]

ERROR_CHARACTERS = 16 * 1024


class Settling(Returning, Locking):
    @repeatable
    def complete(self, leases: Sequence[Row]) -> Plan[list[Settled]]:
        items = _by_lease(leases)
        rows = yield from self._lock_leases("held", list(items))
        held = [Held.read(row[0]) for row in rows]
        if held:
            yield from self._finish(held)
        kept = {(h.id, h.fence) for h in held}
        yield from self._note_lost([Lost(*key) for key in items if key not in kept], "complete")
        return [
            Settled(*lease, "completed" if lease in kept else "lost")
            for lease in ((row[0], row[1]) for row in leases)
        ]

    def _finish(self, held: Sequence[Held]) -> Plan[None]:
        now, ids = held[0].now, [h.id for h in held]
        yield from self._tell("completed", ids)
        if held[0].history == b"all":
            yield self._say("history_completed", ids, now)
        ties = yield from self._ties([h.id for h in held if h.tied])
        yield self._say("finish", ids)
        yield from self._release_keys([k for tie in ties if (k := tie.key_holder)], now)
        yield from self._free_slots((tie.lane for tie in ties if tie.counted), now)

    def _ties(self, ids: Sequence[int]) -> Plan[list[Tie]]:
        if not ids:
            return []
        rows = yield self._say("ties", ids)
        return [Tie(*row) for row in rows]

    @repeatable
    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]:
        """Without an error it is progress: the budget of attempts starts anew. With an error it is
        a failed try: it counts, and the one that uses up max_attempts makes a dead letter."""
        items = _by_lease(deferrals)
        held = yield from self._hold(items)
        status: dict[Key, SettleStatus] = {}
        entries, backs, dying = [], [], []
        for h in held:
            item = items[h.id, h.fence]
            failed = any(x is not None for x in (item.reason, item.error_type, item.error))
            dead = failed and h.spent + 1 >= h.max_attempts
            reason = b"max_attempts" if dead else data(item.reason)
            error = data(item.error_type), _cut(item.error)
            if h.history == b"all" or (failed and h.history == b"failures"):
                outcome = b"retried" if failed else b"deferred"
                entries.append(h.entry(outcome, dead=dead, reason=reason, error=error))
            if dead:
                dying.append((h, Cause(b"max_attempts", *error)))
            else:
                due = h.now + length(item.delay) if item.delay is not None else h.now
                due = due if item.at is None else micros(item.at)
                backs.append(Comeback(h, due, True, failed))
            status[h.id, h.fence] = "dead" if dead else "deferred"
        retried = {h.id for h, _ in dying} | {b.held.id for b in backs if b.fails}
        yield from self._tell("deferred", [h.id for h in held if h.id not in retried])
        yield from self._tell("retried", sorted(retried))
        yield from self._end(held, entries)
        yield from self._save_states([items[b.held.id, b.held.fence] for b in backs])
        yield from self._put_back(backs)
        if dying:
            yield from self._bury(dying, held[0].now)
        return (yield from self._answers(deferrals, status, "defer"))

    @repeatable
    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]:
        items = _by_lease(failures)
        held = yield from self._hold(items)
        entries, dying = [], []
        for h in held:
            item = items[h.id, h.fence]
            cause = Cause(item.reason.encode(), data(item.error_type), _cut(item.error))
            dying.append((h, cause))
            if h.history != b"none":
                entries.append(h.entry(b"failed", dead=True, reason=cause[0], error=cause[1:]))
        yield from self._tell("failed", [h.id for h in held])
        yield from self._end(held, entries)
        if dying:
            yield from self._bury(dying, held[0].now)
        status: dict[Key, SettleStatus] = {(h.id, h.fence): "failed" for h in held}
        return (yield from self._answers(failures, status, "fail"))

    @repeatable
    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        """The work was not begun: the message returns to its place, or later if delayed, and the
        attempt is not counted."""
        items = _by_lease(returns)
        held = yield from self._hold(items)
        entries = [h.entry(b"given_back") for h in held if h.history == b"all"]
        yield from self._tell("given_back", [h.id for h in held])
        yield from self._end(held, entries)
        yield from self._put_back([_given_back(h, items[h.id, h.fence]) for h in held])
        status: dict[Key, SettleStatus] = {(h.id, h.fence): "given_back" for h in held}
        return (yield from self._answers(returns, status, "give_back"))

    @repeatable
    def extend(self, extensions: Sequence[Extension]) -> Plan[list[Settled]]:
        items = _by_lease(extensions)
        rows = yield from self._lock_leases("extend_held", list(items))
        ends: dict[int, list[int]] = defaultdict(list)
        until: dict[Key, int] = {}
        for id, fence, old, now in rows:
            end = int(now) + length(items[id, fence].length)
            ends[end].append(id)
            until[id, fence] = max(int(old), end)
        for end, ids in ends.items():
            yield self._say("extend", ids, end)
        yield from self._note_lost([Lost(*key) for key in items if key not in until], "extend")
        return [
            Settled(e.id, e.fence, "extended", moment(until[e.id, e.fence]))
            if (e.id, e.fence) in until
            else Settled(e.id, e.fence, "lost")
            for e in extensions
        ]

    @repeatable
    def hold(self, leases: Sequence[Row], span: timedelta) -> Plan[list[Hold]]:
        items = list(_by_lease(leases))
        rows = yield self._say("hold_free", items, self._now())
        answers: dict[Key, Hold] = {(row[0], row[1]): "extended" for row in rows}
        if rows:
            yield self._say("extend", [row[0] for row in rows], int(rows[0][2]) + length(span))
        if left := [item for item in items if item not in answers]:
            rows = yield self._say("hold_there", left)
            answers |= {(row[0], row[1]): "locked" for row in rows}
        return [answers.get((row[0], row[1]), "lost") for row in leases]

    def _hold(self, items: dict[Key, Any]) -> Plan[list[FullyHeld]]:
        rows = yield from self._lock_leases("held_fully", list(items))
        return [FullyHeld(*row) for row in rows]

    def _end(self, held: Sequence[FullyHeld], entries: Sequence[Any]) -> Plan[None]:
        """The leases are over; their messages go on elsewhere."""
        if not held:
            return
        yield from self._say_rows("history_add", entries)
        yield self._say("leases_drop", [h.id for h in held])
        yield from self._free_slots((h.lane for h in held if h.counted), held[0].now)

    def _save_states(self, deferrals: Sequence[Deferral]) -> Plan[None]:
        groups: dict[tuple[bytes | None, str | None], list[int]] = defaultdict(list)
        yield from self._check_fits(item.state for item in deferrals if not item.keep)
        for item in deferrals:
            if not item.keep:
                groups[item.state, item.state_type].append(item.id)
        for (state, kind), ids in groups.items():
            yield self._say("save_state", ids, state, data(kind))

    def _answers(
        self, items: Sequence[Any], status: dict[Key, SettleStatus], verb: str
    ) -> Plan[list[Settled]]:
        lost = [Lost(i.id, i.fence) for i in items if (i.id, i.fence) not in status]
        yield from self._note_lost(lost, verb)
        return [Settled(i.id, i.fence, status.get((i.id, i.fence), "lost")) for i in items]


def _by_lease(items: Sequence[Item]) -> dict[Key, Item]:
    """In id order, the first of those that name the same lease."""
    found: dict[Key, Item] = {}
    for item in sorted(items, key=lambda item: (item[0], item[1])):
        found.setdefault((item[0], item[1]), item)
    return found


def _given_back(held: FullyHeld, item: Return) -> Comeback:
    due = held.now + length(item.delay) if item.delay else held.due
    return Comeback(held, due, False, False)


def _cut(error: str | None) -> bytes | None:
    return None if error is None else error[:ERROR_CHARACTERS].encode()
