"""Deficit round robin: who starts how many in a batch, and whose turn is when."""

from collections.abc import Sequence

from penstock.plan import Plan

from .base import Base
from .lanes import Lane, Start


class Rounds:
    """The state of one claim. ``served`` are the lanes that were visited."""

    def __init__(self, limit: int, turn: int) -> None:
        self.left = limit
        self.turn = turn
        self.served: dict[Lane, None] = {}

    def next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def going(self) -> list[Lane]:
        """Those that may start more, in turn."""
        return [lane for lane in self.served if lane.has_more() and lane.room()]


class Serving(Base):
    def _round(self, state: Rounds, lanes: Sequence[Lane], rounds: int) -> Plan[None]:
        """Visits each lane once, for its share of so many rounds, until the batch is full."""
        for number, lane in enumerate(lanes):
            if not state.left:
                return
            state.served[lane] = None
            share = lane.credit if lane.credit >= 1 else lane.credit + rounds * lane.portion
            count = min(int(share), state.left, lane.room())
            yield from self._read_on(lane, count, state.left // (len(lanes) - number))
            started = lane.take(count)
            state.left -= started
            lane.credit = share - started
            # Cut short by the batch's end, it keeps its turn and what is left of its share.
            if state.left or lane.credit < 1:
                lane.turn = state.next_turn()

    def _read_on(self, lane: Lane, count: int, likely: int) -> Plan[None]:
        """Makes sure that the next ``count`` messages are known, and whether more come after."""
        total = len(lane.taken) + count
        if not count or lane.all_known or lane.reach > total:
            return
        reach = max(total, 2 * lane.reach, len(lane.taken) + min(likely, lane.room())) + 1
        starts: list[Start] = []
        all_known = True
        for priority in lane.priorities:
            rows = yield self._say("pick", lane.id, priority, lane.now, reach)
            starts += rows  # type: ignore[arg-type]
            all_known = all_known and len(rows) < reach
        lane.learn(starts, reach, all_known)
