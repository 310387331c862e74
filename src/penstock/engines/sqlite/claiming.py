"""claim: the channels of the ring in turn, whole rounds over them, as many as fill the batch.

A claim that would find nothing writes nothing: it looks before it takes the write lock.
"""

from datetime import timedelta
from operator import itemgetter

from penstock.contract import Taken
from penstock.model import Answer
from penstock.plan import Plan, Row

from .base import State, listed
from .lanes import QUANTUM, Lane
from .rounds import Rounds, Serving
from .telling import Telling
from .times import micros, moment

_WOKEN = 100
"""How many sleeping channels more than the batch's size a claim lets into the ring."""


class Claiming(Serving, Telling):
    def claim(
        self, queues: tuple[str, ...], limit: int, lease: timedelta, worker: str
    ) -> Plan[Taken]:
        now = self._now()
        rows = yield self._look("look", listed(queues), now)
        if not rows[0][0]:
            return _nothing(rows[0], now)
        state = yield from self._begin(fences=1)
        until = state.now + micros(lease)
        lanes = yield from self._serve(queues, limit, state, until)
        ids = [start[2] for lane in lanes for start in lane.taken]
        if not ids:
            return _nothing((yield from self._glance(queues, state.now)), state.now)
        yield self._say("add_claim", state.fence, until, state.now, worker)
        rows = yield self._say("fetch", listed(ids), state.fence)
        yield from self._tell("claimed", ids, state)
        look_again = None
        if len(ids) < limit:
            look_again = _wait((yield from self._glance(queues, state.now)), state.now)
        return Taken(rows, Answer.GOT, look_again, moment(state.now), moment(until))

    def _glance(self, queues: tuple[str, ...], now: int) -> Plan[Row]:
        """Ready, blocked, and when the next channel wakes."""
        rows = yield self._say("look", listed(queues), now)
        return rows[0]

    def _serve(
        self, queues: tuple[str, ...], limit: int, state: State, until: int
    ) -> Plan[list[Lane]]:
        """Leases messages until the batch is full, and leaves their channels as they are then."""
        turn = state.turn
        for queue in queues:
            yield self._say("wake", queue, state.now, turn, limit + _WOKEN)
            turn += limit + _WOKEN
        rounds = Rounds(limit, turn)
        yield from self._first_round(queues, limit, rounds, state.now)
        while rounds.left and (lanes := rounds.going()):
            whole = int(rounds.left / sum(lane.portion for lane in lanes))
            yield from self._round(rounds, lanes, max(1, whole))
        served = list(rounds.served)
        taken = [(*last, state.now) for lane in served for last in lane.last_taken()]
        yield self._each("add_leases", [(*last, state.fence, until) for last in taken])
        yield self._each("take", taken)
        next_dues = {}
        for lane in served:
            next_dues[lane] = yield from self._next_due(lane)
        yield self._each("served", [lane.left_behind(due) for lane, due in next_dues.items()])
        yield self._say("set_turn", rounds.turn)
        return served

    def _first_round(
        self, queues: tuple[str, ...], limit: int, rounds: Rounds, now: int
    ) -> Plan[None]:
        """Over the whole ring, or until the batch is full."""
        after, page = -1, limit // QUANTUM + 2
        while rounds.left:
            found: list[Row] = []
            for queue in queues:
                found += yield self._say("ring", queue, after, page)
            lanes = [Lane(row, now) for row in sorted(found, key=itemgetter(1))[:page]]
            if not lanes:
                return
            after = lanes[-1].turn
            page = min(4 * page, limit)
            yield from self._round(rounds, lanes, 1)

    def _next_due(self, lane: Lane) -> Plan[int | None]:
        """When the channel can start its next message; a priority without messages loses its
        bit."""
        if lane.has_more() or lane.waiting == len(lane.taken):
            return lane.next_due()
        rows = yield self._say("next_due", lane.id, lane.bands, lane.now)
        dues = {priority: due for priority, due in rows if due is not None}
        lane.bands = sum(1 << priority for priority in dues)
        return min(dues.values(), default=None)


def _nothing(seen: Row, now: int) -> Taken:
    answer = Answer.BLOCKED if seen[1] else Answer.EMPTY
    return Taken([], answer, _wait(seen, now), None, None)


def _wait(seen: Row, now: int) -> timedelta | None:
    """None if nothing is known to come, zero if more is there."""
    ready, _, next_at = seen
    if ready:
        return timedelta(0)
    return None if next_at is None else timedelta(microseconds=next_at - now)
