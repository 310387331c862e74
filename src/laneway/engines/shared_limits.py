"""Shared limits in a claim: what it took starts only if all limits that it names let it.

A claim takes messages as ever, and then asks for those that name limits. The others are put back
for an hour, uncounted, and wait in a *lane*: a channel and a set of limits. Claims start as many of
them as may start, of lanes in turn: they are made due, and taken at once. So whoever uses no limits
pays nothing; see docs/decisions/0021-shared-limits.md.

PostgreSQL decides in functions of its own; MySQL and SQLite with what is here: an engine says how
to read and write its tables. Its transaction holds the limits' rows from reading them to the end,
so two claims decide one after the other.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from laneway.limits import EndedAttempt, Join, LimitClock, LimitControl
from laneway.model import ClaimStatus, Return, Settled
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Taken
from laneway.shared_limits import SharedLimit, names_in, shared_limit_of

from .fairness import (
    NO_WAITS,
    ChannelId,
    Lane,
    Limited,
    LimitLane,
    LimitWaits,
    RateLimit,
    limited_rows,
    shares,
    without,
)
from .times import HOUR, SECOND, micros, moment

HOLD = HOUR
"""What waits for a limit is looked at anew after this time, whatever became of its row."""
COMING = SECOND
"""A message that was made due counts as about to start for so long."""
POLL = SECOND // 4
"""When to look again for a slot that nobody announces."""


class LimitState:
    """A limit while it is decided who starts behind it. ``coming``: messages that were made due and
    are about to start; theirs are not for those who come later."""

    def __init__(
        self,
        name: str,
        concurrency: int | None,
        rate: float | None,
        burst: int | None,
        tat: int | None,
        rest_until: int | None,
        round: int,
        running: int,
        coming: int,
        ended: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.round = round
        self.concurrency = concurrency
        self.rate = None if rate is None else RateLimit(float(rate), int(burst or 1))
        self.tat = tat
        self.rest_until = rest_until
        self.running = running
        self.coming = coming
        self.ended = ended
        """Messages that are noted as running and are not any more, where whoever starts one deletes
        them."""

    def lets(self, at: int, released: bool) -> bool:
        if self.rest_until is not None and self.rest_until > at:
            return False
        coming = 0 if released else self.coming
        if self.concurrency is not None and self.running + coming >= self.concurrency:
            return False
        return self.rate is None or self.rate.tokens(self.tat, at) > coming

    def start(self, at: int) -> None:
        self.running += 1
        if self.rate is not None:
            self.tat = self.rate.after(1, self.tat, at)

    def room(self, now: int) -> tuple[int | None, int | None]:
        """How many may start, None if any number; if none, when to look again."""
        if self.rest_until is not None and self.rest_until > now:
            return 0, self.rest_until
        tokens = None if self.rate is None else max(0, self.rate.tokens(self.tat, now))
        if tokens == 0 and self.rate is not None:
            return 0, self.rate.open_at(self.tat, now)
        free = None if self.concurrency is None else self.concurrency - self.running
        rooms = [each - self.coming for each in (free, tokens) if each is not None]
        if not rooms:
            return None, None
        room = max(0, min(rooms))
        return room, None if room else now + POLL


States = Mapping[str, LimitState]


def decide(
    found: Iterable[Limited], states: States, waiting: Iterable[str], released: set[int], at: int
) -> tuple[list[Limited], list[Limited]]:
    """Who starts, and who waits: what waits for the same limits is not passed by what comes later.
    All limits of a message let it start, or none is charged."""
    held = set(waiting)
    start, wait = [], []
    for one in found:
        mine = [states[name] for name in names_in(one.limits)]
        first = one.id in released
        if (first or one.limits not in held) and all(state.lets(at, first) for state in mine):
            for state in mine:
                state.start(at)
            start.append(one)
        else:
            held.add(one.limits)
            wait.append(one)
    return start, wait


def room_of(limits: str, states: States, now: int, want: int) -> tuple[int, int | None]:
    """How many may start behind a set of limits; if none, when to look again."""
    rooms = [states[name].room(now) for name in names_in(limits) if name in states]
    least = min((room for room, _ in rooms if room is not None), default=want)
    return min(least, want), max((again for _, again in rooms if again is not None), default=None)


Kinds = tuple[str, ...] | None


class Passes(NamedTuple):
    """How much the lanes of a set have had: the lowest of those that wait, and the highest of the
    others."""

    lowest: float | None
    idle: float | None


class LimitWait(NamedTuple):
    """A message that waits for limits. ``charge``: what its lane was charged when it was made
    due."""

    id: int
    released: bool
    charge: float


def shown_limit(
    name: str,
    rate: float | None,
    burst: int | None,
    control: LimitControl,
    now: int,
    running: int = 0,
    waiting: int = 0,
) -> SharedLimit:
    """What is told of a limit, by the columns of its row."""
    rest, opened = control.rest_until, control.open_until
    window, pause = control.breaker_window, control.breaker_pause
    row = (
        name,
        control.set_concurrency,
        rate,
        burst,
        moment(rest) if rest is not None and rest > now and rest != opened else None,
        running,
        waiting,
        control.adapt_min,
        control.adapt_max,
        control.adapted,
        control.breaker_failures,
        None if window is None else timedelta(microseconds=window),
        control.breaker_minimum,
        None if pause is None else timedelta(microseconds=pause),
        moment(control.opened_at),
        moment(opened) if opened is not None and opened > now else None,
        *control.counts(now),
    )
    return shared_limit_of(row)


Take = Callable[[Mapping[ChannelId, int]], Plan[Taken]]
"""Claims so many messages of each of these channels, without their turns."""
_MAX_TRIES = 20
_NOTHING = Taken([], ClaimStatus.BLOCKED, None, None, None, limited=True)


class LimitPlans:
    """What an engine has to add begins with ``_limit``."""

    _limit_one_lock = False
    """Whether a transaction that has asked for some limits must not lock others."""

    def _limit_put_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        raise NotImplementedError

    def _limit_lock(self, names: Sequence[str], now: int) -> Plan[None]:
        """Creates those that are not there, and locks them in order."""
        raise NotImplementedError

    def _limit_look(
        self, names: Sequence[str], now: int, claimed: Sequence[int] | None = None
    ) -> Plan[dict[str, LimitState]]:
        """The limits as they are, without a lock. ``claimed``: in the transaction of a claim that
        took these messages, which are not about to come any more."""
        raise NotImplementedError

    def _limit_start(self, started: Sequence[Limited], states: Sequence[LimitState]) -> Plan[None]:
        """Notes who runs behind which limit, and when the next may start."""
        raise NotImplementedError

    def _limit_control(self, name: str) -> Plan[LimitControl]:
        """All that its row knows, beside the rate."""
        raise NotImplementedError

    def _limit_set_control(self, name: str, control: LimitControl) -> Plan[None]:
        raise NotImplementedError

    def _limit_end(
        self, name: str, gone: Sequence[EndedAttempt], left: Sequence[int]
    ) -> Plan[LimitControl]:
        """Of a limit that is locked, and adapts or has a breaker: these have ended."""
        control = yield from self._limit_control(name)
        control.end(gone, left)
        yield from self._limit_set_control(name, control)
        return control

    def _limit_waits(self, ids: Sequence[int]) -> Plan[list[LimitWait]]:
        raise NotImplementedError

    def _limit_held(self, sets: Sequence[str]) -> Plan[list[str]]:
        """Those sets of limits that something waits for."""
        raise NotImplementedError

    def _limit_all_sets(self) -> Plan[list[str]]:
        """Sets of limits that something of any queue may wait for, in the claim's transaction."""
        raise NotImplementedError

    def _limit_passes(self, sets: Sequence[str]) -> Plan[dict[str, Passes]]:
        """How much the lanes of these sets have had, in the claim's transaction."""
        raise NotImplementedError

    def _limit_wait(
        self, waiting: Sequence[Limited], charges: Mapping[int, float], now: int
    ) -> Plan[None]:
        """They wait in their lanes, and get back what they were charged."""
        raise NotImplementedError

    def _limit_lane(self, limits: str, id: int) -> Plan[LimitLane]:
        """Of a message that was claimed."""
        raise NotImplementedError

    def _limit_charge(
        self, limits: str, lane: LimitLane, begins: float, charge: float, now: int
    ) -> Plan[None]:
        """So much more it has had now: after what its row says, which an old snapshot may not show,
        or after where it begins."""
        raise NotImplementedError

    def _limit_clock(self, limits: str) -> Plan[LimitClock]:
        raise NotImplementedError

    def _limit_set_clock(self, limits: str, clock: LimitClock, now: int) -> Plan[None]:
        raise NotImplementedError

    def limit_sweep(self, waiting: Sequence[Limited]) -> Plan[None]:
        """What comes behind them in their channels with the same limits may wait too, so that not
        every one of it has to be claimed for it."""
        yield from ()

    def _limit_sets(self, queues: tuple[str, ...]) -> Plan[list[str]]:
        """Sets of limits that something of these queues waits for: the lowest pass first, of the
        same pass the one whose message was due first."""
        raise NotImplementedError

    def _limit_lanes(
        self, limits: str, queues: tuple[str, ...], kinds: Kinds, room: int, now: int
    ) -> Plan[list[Lane]]:
        """Lanes whose channels may start something, locked, the lowest pass first."""
        raise NotImplementedError

    def _limit_next(self, limits: str, channel: ChannelId, kinds: Kinds, n: int) -> Plan[list[int]]:
        """The first messages of a lane."""
        raise NotImplementedError

    def _limit_release(self, limits: str, lane: Lane, ids: Sequence[int], now: int) -> Plan[None]:
        """Marks them, and moves the lane on."""
        raise NotImplementedError

    def _limit_make_due(self, ids: Sequence[int]) -> Plan[list[int]]:
        """From the time on at which they were due; forgets those that have ended, and returns the
        others."""
        raise NotImplementedError

    def _limit_now(self) -> Plan[int]:
        raise NotImplementedError

    def _limit_begin(self) -> Plan[None]:
        """Before the first write."""
        yield from ()

    def admit(self, found: Sequence[Limited], taken: Taken) -> Plan[set[int]]:
        """Those of the claimed messages that may start; the others are put back."""
        assert taken.claimed_at is not None
        at = micros(taken.claimed_at)
        names = sorted({name for one in found for name in names_in(one.limits)})
        ids = [one.id for one in found]
        yield from self._limit_lock(names, at)
        # Who waits is read before who is about to start: what is made due meanwhile, for which no
        # limit is locked, is seen as one of both.
        sets = sorted({one.limits for one in found})
        held = yield from self._limit_held(sets)
        known = yield from self._limit_all_sets()
        others = sorted({one for one in known if any(_share(one, mine) for mine in sets)})
        others = (yield from self._limit_held(others)) if others else []
        more = {name for one in others for name in names_in(one)}.difference(names)
        states = yield from self._limit_look([*names, *sorted(more)], at, ids)
        held += _passing(sets, others, states, at)
        waits = {wait.id: wait for wait in (yield from self._limit_waits(ids))}
        released = {id for id, wait in waits.items() if wait.released}
        turns, first = _in_turn(found, released, taken)
        start, wait = decide(turns, states, held, first, at)
        if start:
            yield from self._limit_start(start, [states[name] for name in names])
            charges = {id: waits[id].charge for id in released}
            yield from self._charge_lanes(start, charges, taken, at)
        if wait:
            charges = {one.id: waits[one.id].charge for one in wait if one.id in released}
            yield from self._limit_wait(wait, charges, at)
            # Each until a time of its own, by which its wake is found again.
            later = [timedelta(microseconds=HOLD + number) for number in range(len(wait))]
            returns = [Return(o.id, o.fence, d) for o, d in zip(wait, later, strict=True)]
            yield from self._limit_put_back(returns)
        return {one.id for one in start}

    def _charge_lanes(
        self, started: Sequence[Limited], charges: Mapping[int, float], taken: Taken, now: int
    ) -> Plan[None]:
        """What starts without having waited is charged to its lane, as the others were when they
        were made due (``charges``); and the clocks of the sets go on."""
        names = {row[Column.ID]: (row[Column.QUEUE], row[Column.CHANNEL]) for row in taken.rows}
        lanes: dict[tuple[str, object], list[int]] = {}
        for one in started:
            lanes.setdefault((one.limits, names[one.id]), []).append(one.id)
        clocks, lowest = dict[str, LimitClock](), dict[str, float]()
        for (limits, _), ids in lanes.items():
            direct = [id for id in ids if id not in charges]
            lane = yield from self._limit_lane(limits, (direct or ids)[0])
            if limits not in clocks:
                clocks[limits] = yield from self._limit_clock(limits)
            passed = (lane.passed or 0.0) - sum(charges.get(id, 0.0) for id in ids)
            if direct:
                begins = clocks[limits].at(lane.due, now, None)
                if begins is None:
                    begins = (yield from self._joins([limits]))[limits].at(lane.due, now)
                passed = max(lane.passed or 0.0, begins)
                charge = len(direct) / lane.weight
                yield from self._limit_charge(limits, lane, begins, charge, now)
            lowest[limits] = min(passed, lowest.get(limits, passed))
        for limits, passed in sorted(lowest.items()):
            if clocks[limits].advance(passed, now):
                yield from self._limit_set_clock(limits, clocks[limits], now)

    def _joins(self, sets: Sequence[str]) -> Plan[dict[str, Join]]:
        known = yield from self._limit_all_sets()
        near = {mine: [mine, *(one for one in known if _share(one, mine))] for mine in sets}
        passes = yield from self._limit_passes(
            sorted({one for some in near.values() for one in some})
        )
        joins = {}
        for mine, some in near.items():
            others = [passes[one].lowest for one in some[1:]]
            idle = [passes[one].idle for one in some]
            joins[mine] = Join(
                (yield from self._limit_clock(mine)),
                passes[mine].lowest,
                min((each for each in others if each is not None), default=None),
                max((each for each in idle if each is not None), default=0.0),
            )
        return joins

    def start_limited(
        self, queues: tuple[str, ...], kinds: Kinds, want: int, among: Sequence[Limited], take: Take
    ) -> Plan[tuple[Taken, LimitWaits]]:
        """Takes as many as may start, without their channels' turns."""
        for _ in range(_MAX_TRIES):
            due, waits = yield from self._release_limited(queues, kinds, want, among)
            if due or not waits.released:
                break  # otherwise all of them had ended meanwhile
        if not due:
            return _NOTHING, waits
        taken = yield from take(due)
        if found := limited_rows(taken):
            started = yield from self.admit(found, taken)
            taken = without(taken, {one.id for one in found} - started)
        return taken, waits._replace(released=max(0, waits.released - len(taken.rows)))

    def _release_limited(
        self, queues: tuple[str, ...], kinds: Kinds, want: int, among: Sequence[Limited]
    ) -> Plan[tuple[dict[ChannelId, int], LimitWaits]]:
        """As many as may start become due, of lanes in turn: how many of which channels."""
        sets = yield from self._limit_sets(queues)
        if self._limit_one_lock and among:
            mine = {name for one in among for name in names_in(one.limits)}
            sets = [limits for limits in sets if mine.issuperset(names_in(limits))]
        if not sets:
            return {}, NO_WAITS
        now = yield from self._limit_now()
        others = (yield from self._waiting_elsewhere(sets)) if among else []
        names = sorted({name for limits in (*sets, *others) for name in names_in(limits)})
        states = yield from self._limit_look(names, now)
        # What was put back because it would pass what could start of other queues stays there.
        passing = _passing(sets, others, states, now)
        sets = [limits for limits in sets if limits not in passing]
        again, chosen, begun, held = list[int](), dict[int, ChannelId](), False, False
        for limits in sets:
            room, later = room_of(limits, states, now, want - len(chosen))
            if later is not None:
                again.append(later)
            if room > 0 and not begun:
                begun = True
                yield from self._limit_begin()
            while room > 0:
                lanes = yield from self._limit_lanes(limits, queues, kinds, room, now)
                held = held or bool(lanes)
                ids = yield from self._pick(limits, lanes, kinds, room, now)
                if not ids:
                    break
                room -= len(ids)
                chosen |= ids
                for name in names_in(limits):
                    if name in states:
                        states[name].coming += len(ids)
        due = (yield from self._limit_make_due(list(chosen))) if chosen else []
        wait = timedelta(microseconds=max(0, min(again, default=now + POLL) - now))
        return Counter(chosen[id] for id in due), LimitWaits(len(chosen), True, wait, held)

    def _waiting_elsewhere(self, sets: Sequence[str]) -> Plan[list[str]]:
        """Other sets that something of any queue waits for, and that share a limit with these."""
        known = yield from self._limit_all_sets()
        others = {one for one in known if one not in sets and any(_share(one, my) for my in sets)}
        return (yield from self._limit_held(sorted(others))) if others else []

    def _pick(
        self, limits: str, lanes: Sequence[Lane], kinds: Kinds, room: int, now: int
    ) -> Plan[dict[int, ChannelId]]:
        counts = shares(lanes, room)
        chosen: dict[int, ChannelId] = {}
        for lane in lanes:
            ids: list[int] = []
            if counts.get(lane.channel_id):
                count = counts[lane.channel_id]
                ids = yield from self._limit_next(limits, lane.channel_id, kinds, count)
            if ids or kinds is None:
                yield from self._limit_release(limits, lane, ids, now)
            chosen |= dict.fromkeys(ids, lane.channel_id)
        return chosen


def _passing(sets: Sequence[str], waiting: Sequence[str], states: States, now: int) -> list[str]:
    """Those sets whose messages would pass what waits for others of their limits and could
    start."""
    ready = [one for one in waiting if room_of(one, states, now, 1)[0] > 0]
    return [mine for mine in sets if any(_share(one, mine) for one in ready)]


def _share(one: str, other: str) -> bool:
    """Whether two sets are not the same and have a limit in common."""
    return one != other and not set(names_in(one)).isdisjoint(names_in(other))


def _in_turn(
    found: Sequence[Limited], released: set[int], taken: Taken
) -> tuple[list[Limited], set[int]]:
    """In which order they are asked for, and which have been made due. That stands for the first of
    its lane: one that was given back may come before it. Then one of each channel, then the next: a
    claim takes several of a channel at once."""
    rows = {row[Column.ID]: row for row in taken.rows}
    lanes: dict[tuple[str, object, object], list[Limited]] = {}
    for one in found:
        row = rows[one.id]
        lanes.setdefault((one.limits, row[Column.QUEUE], row[Column.CHANNEL]), []).append(one)
    ranks: dict[int, int] = {}
    first: set[int] = set()
    for lane in lanes.values():
        lane.sort(
            key=lambda one: (-int(rows[one.id][Column.PRIORITY]), rows[one.id][Column.DUE], one.id)
        )
        due = sum(one.id in released for one in lane)
        first.update(one.id for one in lane[:due])
        ranks |= {one.id: rank for rank, one in enumerate(lane)}
    turns = sorted(found, key=lambda one: (one.id not in first, ranks[one.id]))
    return turns, first
