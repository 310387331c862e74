"""upkeep: what time brings, whoever runs it."""

from collections.abc import Sequence

from penstock.model import UpkeepReport
from penstock.plan import Plan

from .base import State, listed
from .ending import Back, Ending, Fate, Grave

_LIMIT = 1000
"""Of each kind, in one transaction."""
_STEPS = 10
_LOST = ("max_attempts", "LeaseExpired", "the lease ran out before the work was settled")


class Upkeep(Ending):
    def upkeep(self) -> Plan[UpkeepReport]:
        """Looks first: with nothing to do it writes nothing and waits for nobody. Much to do is
        done in several short transactions."""
        done = UpkeepReport(ran=True)
        for _ in range(_STEPS):
            rows = yield self._look("chores", self._now())
            if not any(rows[0]):
                break
            step = yield from self._step(*rows[0])
            done = UpkeepReport(
                True, *(a + b for a, b in zip(_counts(done), _counts(step), strict=True))
            )
        return done

    def _step(
        self, expire: bool, lapse: bool, keys: bool, closing: bool, mail: bool, history: bool
    ) -> Plan[UpkeepReport]:
        state = yield from self._begin(turns=2 * _LIMIT)
        expired = buried = lapsed = tidied = 0
        if expire:
            expired, buried = yield from self._expire(state)
        if lapse:
            lapsed = yield from self._lapse(state)
        if keys:
            tidied += len((yield self._say("forget_keys", state.now, _LIMIT)))
        if closing or expired or lapsed:
            tidied += len((yield self._say("forget_channels")))
        if mail:
            yield self._say("forget_listeners", state.now)
            tidied += len((yield self._say("forget_mail")))
        if history:
            tidied += len((yield self._say("forget_history", state.now, _LIMIT)))
        return UpkeepReport(True, expired, buried, lapsed, tidied)

    def _expire(self, state: State) -> Plan[tuple[int, int]]:
        """Back to their own channels, later each time; what used up max_attempts becomes a dead
        letter here, before its payload can leave again."""
        fences = listed(row[0] for row in (yield self._say("claims_over", state.now, _LIMIT)))
        over = yield self._say("expired", fences, state.now, _LIMIT)
        released = yield from self._release(over)
        fates = yield from self._fates(released)
        graves = [Grave(f.id, *_LOST) for f in fates if f.spent + 1 >= f.max_attempts]
        dead = {grave.id for grave in graves}
        notes = [_note(fate, fate.id in dead) for fate in fates]
        backs = [_later(fate, state) for fate in fates if fate.id not in dead]
        yield from self._settle(fates, notes, backs, graves, state)
        yield self._say("claims_done", fences)
        yield self._say("claims_later", fences)
        return len(fates), len(graves)

    def _lapse(self, state: State) -> Plan[int]:
        rows = yield self._say("lapsed", state.now, _LIMIT)
        ids = [row[0] for row in rows]
        later = state._replace(turn=state.turn + _LIMIT)
        return len((yield from self._end_waiting(ids, "lapsed", later)))


def _counts(report: UpkeepReport) -> tuple[int, ...]:
    return report.expired, report.buried, report.lapsed, report.tidied


def _note(fate: Fate, dead: bool) -> Sequence[object]:
    reason = _LOST[0] if dead else None
    return (fate.id, fate.fence, "expired", 0, dead, reason, None, None)


def _later(fate: Fate, state: State) -> Back:
    wait = min(state.backoff_most, state.backoff_first * 2 ** min(fate.spent, 40))
    return Back(fate.id, state.now + wait, True, fate.spent + 1)
