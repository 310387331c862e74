"""claim: take messages under leases, fairly over the channels of the given queues.

Keeps: at most `concurrency` leases and `burst + window x rate` starts a channel; channels are
served least recently served first, `quantum x weight` messages a visit; inside a channel by
priority, due time and publish order. An idle claim writes nothing.

Locks: channel rows, with SKIP LOCKED. It waits only while it holds no row that was there before: to
insert new channel rows (in id order), and once for a channel when all are held by others. So claims
cannot deadlock, with each other or with the verbs that lock channel rows in id order.

One pass: look (which channels are next), own (lock their rows), serve (consume their wakes, lease,
write the schedule down). Every step is a new statement and sees what was committed before it.
"""

import random
from collections.abc import Sequence
from datetime import timedelta

from penstock.contract import Taken
from penstock.model import Answer
from penstock.plan import Plan, Row

from .base import Clock
from .looking import Later, Look, Looking, supply
from .repeating import repeatable
from .serving import Serving
from .sharing import QUANTUM
from .telling import Telling
from .times import length, moment
from .visits import PARKED

_PASSES = 20
_FURTHEST = 1024


class _Course:
    """What a claim has come to."""

    def __init__(self, limit: int, offset: int) -> None:
        self.limit = limit
        self.offset = offset
        self.rows: list[Row] = []
        self.claimed_at: int | None = None
        self.held = False
        """Whether it holds locks."""
        self.more = False
        """Whether there may be more at once."""
        self.reach = 1
        self.now = 0

    @property
    def left(self) -> int:
        return self.limit - len(self.rows)


class Claiming(Looking, Serving, Telling):
    def __init__(self, schema: str = "penstock", clock: Clock | None = None) -> None:
        super().__init__(schema, clock)
        # Over how many channels the claims that meet each other spread: each starts at random
        # somewhere in it, instead of all before the same channels.
        self._crowd: dict[tuple[str, ...], int] = {}

    @repeatable
    def claim(
        self, queues: tuple[str, ...], limit: int, lease: timedelta, worker: str
    ) -> Plan[Taken]:
        course = _Course(limit, self._somewhere(queues))
        for number in range(_PASSES):
            look = yield from self._look(queues, course.left * course.reach, course.offset)
            course.now, course.more = look.now, course.offset > 0
            if not look.lanes:
                if not course.offset:
                    break
                course.offset = 0
                continue
            owned = yield from self._own(look, course.held)
            self._meet_crowd(queues, len(look.lanes), len(owned))
            course.more = course.more or look.cut or len(owned) < len(look.lanes)
            if owned:
                yield from self._visit(course, look, owned, length(lease), worker.encode())
                if not course.left or not course.more:
                    break
            else:
                if course.held:
                    break
                yield from self._stand_in_line(course, look, number)
        return (yield from self._taken(course, queues, look, length(lease)))

    def _own(self, look: Look, held: bool) -> Plan[Sequence[Row]]:
        new = [lane for lane in look.lanes if not lane.known]
        # The insert may wait for another session that does the same: only while nothing is held.
        if new and not held:
            rows = sorted((lane.id, lane.queue, lane.name) for lane in new)
            yield from self._say_rows("channels_meet", rows)
        return (yield self._say("channels_own", [lane.id for lane in look.lanes], self._now()))

    def _visit(
        self, course: _Course, look: Look, owned: Sequence[Row], lease: int, worker: bytes
    ) -> Plan[None]:
        course.held = True
        # A claim that one channel can fill makes rounds of its own size: a whole quantum of each
        # would make those who come one by one wait, and a weight counts only if what the end of the
        # batch cuts off is remembered.
        quantum = min(QUANTUM, course.limit)
        served = yield from self._serve(look, owned, course.left, quantum, lease, worker)
        course.rows += served.rows
        yield from self._tell("claimed", [int(row[0]) for row in served.rows])
        if course.claimed_at is None:
            course.claimed_at = served.now
        # News that brought nothing (of channels whose turn is yet to come, of ended leases).
        course.reach = 1 if served.rows else min(4 * course.reach, _FURTHEST)
        course.offset = 0
        course.more = course.more or served.more

    def _stand_in_line(self, course: _Course, look: Look, number: int) -> Plan[None]:
        """All that was seen is being claimed by others: start elsewhere, then reach further; when
        that is everything due, wait for the first channel, once, while nothing else is held."""
        if number == 0:
            return
        if course.offset:
            course.offset = 0
        elif look.cut or supply(look.lanes) >= course.left * course.reach:
            # Past what one channel could give, or a few that are held would hide all others.
            course.reach = min(max(4 * course.reach, QUANTUM // course.left + 1), _FURTHEST)
        else:
            yield self._say("channel_wait", look.lanes[0].id)
            course.held = True

    def _taken(
        self, course: _Course, queues: tuple[str, ...], look: Look, lease: int
    ) -> Plan[Taken]:
        if not course.left:
            start = moment(course.claimed_at or 0)
            return Taken(
                course.rows, Answer.GOT, None, start, start + timedelta(microseconds=lease)
            )
        later = look.later
        if course.held:
            later, missed = yield from self._later(queues, look)
            course.more = course.more or missed
        wait = _wait(later, course)
        answer = _why(later, course)
        if course.claimed_at is None:
            return Taken(course.rows, answer, wait, None, None)
        start = moment(course.claimed_at)
        return Taken(course.rows, answer, wait, start, start + timedelta(microseconds=lease))

    def _somewhere(self, queues: tuple[str, ...]) -> int:
        return random.randint(0, self._crowd.get(queues, 0))

    def _meet_crowd(self, queues: tuple[str, ...], lanes: int, owned: int) -> None:
        crowd = self._crowd.get(queues, 0)
        if 2 * owned < lanes:
            self._crowd[queues] = max(2 * lanes, min(2 * crowd, 16 * lanes))
        else:
            self._crowd[queues] = crowd // 2


def _wait(later: Later, course: _Course) -> timedelta | None:
    if course.more:
        return timedelta(0)
    times = [time for time in later if time is not None and time < PARKED]
    return timedelta(microseconds=max(0, min(times) - course.now)) if times else None


def _why(later: Later, course: _Course) -> Answer:
    if course.rows:
        return Answer.GOT
    if course.more:
        return Answer.BUSY
    return Answer.EMPTY if later.turn is None else Answer.BLOCKED
