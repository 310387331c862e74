"""What ``channel.limit()`` changes of a policy, and what it leaves as it is; how a shared limit
adapts, how its breaker opens and closes, and how far those have come that share it."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from .durations import Duration, check_duration
from .errors import InvalidOption, shown
from .model import KEEP, Keep, Policy
from .spelling import explains_mistakes

_LONGEST_BURST = 100 * 366 * 86_400  # seconds
_MICROSECOND = timedelta(microseconds=1)
_SECOND = 1_000_000
_REMEMBERED = 60 * _SECOND


class LimitChange(NamedTuple):
    """The limits to set, or to remove with None; KEEP leaves one alone."""

    concurrency: int | Keep | None = KEEP
    rate: float | Keep | None = KEEP
    burst: int | Keep | None = KEEP
    backlog: int | Keep | None = KEEP
    weight: float | Keep = KEEP

    @property
    def named(self) -> list[str]:
        """Which limits it changes."""
        return [name for name, value in self._asdict().items() if value is not KEEP]

    def applied(self, policy: Policy) -> Policy:
        """The policy afterwards. A new rate has a burst of its own, unless one is named."""
        rate = policy.rate if self.rate is KEEP else self.rate
        burst = self.burst
        if burst is KEEP:
            burst = policy.burst if self.rate is KEEP else None
        return Policy(
            policy.concurrency if self.concurrency is KEEP else self.concurrency,
            rate,
            burst_for(rate, burst),
            policy.backlog if self.backlog is KEEP else self.backlog,
            policy.weight if self.weight is KEEP else self.weight,
            policy.paused,
            paused_until=policy.paused_until,
            throttled=policy.throttled,
        )


def burst_for(rate: float | None, burst: int | None) -> int | None:
    """The burst that goes with a rate: by default one second's worth."""
    if rate is None:
        if burst is not None:
            raise InvalidOption("burst goes with rate: give a rate too")
        return None
    if burst is None:
        return max(1, math.ceil(rate))
    if burst / rate > _LONGEST_BURST:
        raise InvalidOption(
            f"a burst of {burst} at a rate of {rate} lasts longer than a century: "
            "lower the burst, or leave the rate out"
        )
    return burst


_MOST_AT_ONCE = 2**31 - 1
_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(days=1)


@explains_mistakes
@dataclass(frozen=True, slots=True)
class Adapt:
    """The limit finds its own concurrency from ``min`` to ``max``: one more after each round of
    completed messages while it is full, half as many when a handler raises Throttled with its name
    or times out. That counts once for all that ran at the time.

    >>> queue.limits["stripe"].set(concurrency=20, adapt=Adapt(min=2, max=50))
    """

    min: int
    max: int

    def __post_init__(self) -> None:
        for value in (self.min, self.max):
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidOption(f"Adapt takes whole numbers, not {shown(value)}")
        if not 1 <= self.min <= self.max <= _MOST_AT_ONCE:
            raise InvalidOption(
                f"Adapt cannot range from {self.min} to {self.max}: give a min of at least 1, "
                "and a max that is not below it"
            )


@explains_mistakes
@dataclass(frozen=True, slots=True)
class Breaker:
    """Nothing starts behind the limit for ``pause`` once this share of the attempts that ended in
    the last ``window`` has failed, of ``minimum`` attempts at least. Then one at a time is let
    through: if it completes, the breaker closes, if it fails, the next pause begins.

    >>> queue.limits["stripe"].set(breaker=Breaker(failures=0.5, window=30, minimum=10, pause=60))
    """

    failures: float = 0.5
    window: Duration = timedelta(seconds=30)
    minimum: int = 10
    pause: Duration = timedelta(seconds=60)

    def __post_init__(self) -> None:
        share = self.failures
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise InvalidOption(
                f"failures is {shown(share)}: it must be a share above 0 and at most 1, such as 0.5"
            )
        least = self.minimum
        if isinstance(least, bool) or not isinstance(least, int) or not 1 <= least <= 1_000_000:
            raise InvalidOption(
                f"minimum is {shown(least)}: it must be a whole number between 1 and 1000000"
            )
        for name in ("window", "pause"):
            length = check_duration(name, getattr(self, name), _SHORTEST, _LONGEST)
            object.__setattr__(self, name, length)
        object.__setattr__(self, "failures", float(share))


class AttemptEnd(IntEnum):
    """How an attempt ended, as far as a limit that adapts or has a breaker wants to know. What is
    given back or cancelled says nothing."""

    COMPLETED = 1
    FAILED = 2
    TIMED_OUT = 3
    THROTTLED = 4
    EXPIRED = 5


class EndedAttempt(NamedTuple):
    """An attempt behind a limit whose lease is gone. ``outcome``: an AttemptEnd, if it is known."""

    round: int
    outcome: int | None
    ended_at: int | None


_SLOTS = 10
_COUNTED = (AttemptEnd.COMPLETED, AttemptEnd.FAILED, AttemptEnd.TIMED_OUT, AttemptEnd.EXPIRED)
_SLOWED = (AttemptEnd.TIMED_OUT, AttemptEnd.THROTTLED)


@dataclass(slots=True)
class LimitControl:
    """What the row of a shared limit knows beside its rate: the same rules as control_limit_v1 on
    PostgreSQL. Times are in microseconds.

    ``concurrency`` is the number in force. ``round`` counts decreases and openings: what started in
    a round before ``adapt_round`` says nothing about the number any more, before ``breaker_round``
    nothing about the breaker. ``recent``: what ended lately, by tenths of the window: a list of
    slot, ended, failed, as JSON."""

    concurrency: int | None = None
    set_concurrency: int | None = None
    rest_until: int | None = None
    adapt_min: int | None = None
    adapt_max: int | None = None
    adapted: int | None = None
    successes: int = 0
    breaker_failures: float | None = None
    breaker_window: int | None = None
    breaker_minimum: int | None = None
    breaker_pause: int | None = None
    opened_at: int | None = None
    open_until: int | None = None
    recent: str | None = None
    round: int = 0
    adapt_round: int = 0
    breaker_round: int = 0

    def end(self, gone: Sequence[EndedAttempt], left: Sequence[int]) -> None:
        """These have ended; ``left``: the rounds of those that run."""
        self._adapt(gone, len(gone) + len(left))
        self._break(gone)
        self.concurrency = self._number
        if self.opened_at is not None:
            probes = 1 + sum(round < self.breaker_round for round in left)
            self.concurrency = _least(self.concurrency, probes)

    def set(
        self,
        concurrency: int | Keep | None,
        adapt: Adapt | Keep | None,
        breaker: Breaker | Keep | None,
    ) -> None:
        """A limit that adapts begins at its concurrency, or at the nearest of its bounds; with new
        bounds it stays where it is. Another breaker is closed, and counts anew. What is set to what
        it is changes nothing: programs set their limits whenever they start."""
        if concurrency == self.set_concurrency:
            concurrency = KEEP
        if adapt == self._bounds:
            adapt = KEEP
        if breaker == self._breaker:
            breaker = KEEP
        found = self.adapted
        if concurrency is not KEEP:
            self.set_concurrency, found = concurrency, None
        if adapt is not KEEP:
            self.adapt_min, self.adapt_max = (adapt.min, adapt.max) if adapt else (None, None)
        if concurrency is not KEEP or adapt is not KEEP:
            self.adapted, self.successes = None, 0
            if self.adapt_min is not None and self.adapt_max is not None:
                begin = self.set_concurrency if found is None else found
                begin = self.adapt_min if begin is None else begin
                self.adapted = max(self.adapt_min, min(self.adapt_max, begin))
        if breaker is not KEEP:
            self._set_breaker(breaker)
        if self.opened_at is None:
            self.concurrency = self._number
        else:  # whoever decides next knows how many more there may be
            self.concurrency = _least(self._number, self.concurrency)

    def counts(self, now: int) -> tuple[int, int]:
        """How many attempts have ended and failed in the window."""
        if self.breaker_window is None or self.recent is None:
            return 0, 0
        first = now // self._width - _SLOTS
        slots = [slot for slot in json.loads(self.recent) if slot[0] > first]
        return sum(slot[1] for slot in slots), sum(slot[2] for slot in slots)

    @property
    def _number(self) -> int | None:
        return self.set_concurrency if self.adapt_min is None else self.adapted

    @property
    def _bounds(self) -> Adapt | None:
        if self.adapt_min is None or self.adapt_max is None:
            return None
        return Adapt(self.adapt_min, self.adapt_max)

    @property
    def _breaker(self) -> Breaker | None:
        if self.breaker_failures is None or self.breaker_minimum is None:
            return None
        window = (self.breaker_window or 0) * _MICROSECOND
        pause = (self.breaker_pause or 0) * _MICROSECOND
        return Breaker(self.breaker_failures, window, self.breaker_minimum, pause)

    @property
    def _width(self) -> int:
        return max(1, (self.breaker_window or 0) // _SLOTS)

    def _set_breaker(self, breaker: Breaker | None) -> None:
        if self.rest_until == self.open_until:
            self.rest_until = None
        self.opened_at = self.open_until = self.recent = None
        self.breaker_failures = self.breaker_minimum = None
        self.breaker_window = self.breaker_pause = None
        if breaker is not None:
            self.breaker_failures, self.breaker_minimum = breaker.failures, breaker.minimum
            self.breaker_window = check_duration("window", breaker.window) // _MICROSECOND
            self.breaker_pause = check_duration("pause", breaker.pause) // _MICROSECOND

    def _adapt(self, gone: Sequence[EndedAttempt], ran: int) -> None:
        number, least, most = self.adapted, self.adapt_min, self.adapt_max
        if number is None or least is None or most is None or self.opened_at is not None:
            return
        outcomes = [one.outcome for one in gone if one.round >= self.adapt_round]
        if any(outcome in _SLOWED for outcome in outcomes):
            number, self.successes = max(least, number // 2), 0
            self.round += 1
            self.adapt_round = self.round
        elif ran >= number:
            self.successes += outcomes.count(AttemptEnd.COMPLETED)
            while number < most and self.successes >= number:
                self.successes -= number
                number += 1
            if number == most:
                self.successes = 0
        self.adapted = number

    def _break(self, gone: Sequence[EndedAttempt]) -> None:
        if self.breaker_window is None:
            return
        mine = [one for one in gone if one.round >= self.breaker_round and one.outcome in _COUNTED]
        failures = [one.ended_at or 0 for one in mine if one.outcome != AttemptEnd.COMPLETED]
        if not mine:
            return
        if self.opened_at is not None and not failures:
            self.opened_at = self.open_until = self.recent = None
        elif self.opened_at is not None or self._too_many(mine, bool(failures)):
            failed_at = max(failures)
            if self.opened_at is None:
                self.opened_at = failed_at
            self.open_until = failed_at + (self.breaker_pause or 0)
            self.rest_until = max(self.rest_until or 0, self.open_until)
            self.round += 1
            self.breaker_round = self.round

    def _too_many(self, mine: Sequence[EndedAttempt], failed: bool) -> bool:
        """Of the attempts in the window, with these."""
        slots = {slot: (ended, bad) for slot, ended, bad in json.loads(self.recent or "[]")}
        for one in mine:
            slot = (one.ended_at or 0) // self._width
            ended, bad = slots.get(slot, (0, 0))
            slots[slot] = ended + 1, bad + (one.outcome != AttemptEnd.COMPLETED)
        first = max(slots) - _SLOTS
        kept = [(slot, *counts) for slot, counts in sorted(slots.items()) if slot > first]
        self.recent = json.dumps(kept)
        ended, bad = sum(slot[1] for slot in kept), sum(slot[2] for slot in kept)
        least, share = self.breaker_minimum or 1, self.breaker_failures or 1.0
        return failed and ended >= least and bad >= share * ended


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


class LimitClock:
    """How far a set of limits has come: the pass of what started, at times (in microseconds) of the
    last minute, both rising. Who was due at one of them, and is found later, begins where the
    others were then. PostgreSQL does the same in functions (``limit_pass_v1``)."""

    def __init__(self, points: Sequence[Sequence[float]] = ()) -> None:
        self.points = [(int(at), float(passed)) for at, passed in points]

    @classmethod
    def read(cls, text: str | bytes | None) -> "LimitClock":
        return cls(json.loads(text) if text else ())

    def written(self) -> str:
        return json.dumps(self.points)

    def advance(self, passed: float, now: int) -> bool:
        """Something starts whose lane has had ``passed``. If others had more before, they were
        ahead of it: nobody who was due since then begins where they were. Whether this is news:
        while it rises, once a second."""
        if self.points:
            at, last = self.points[-1]
            if last == passed or (last < passed and at > now - _SECOND):
                return False
        since = now
        while self.points and self.points[-1][1] > passed:
            since, _ = self.points.pop()
        # The last one before the minute tells where it began.
        old = sum(at <= now - _REMEMBERED for at, _ in self.points[1:])
        self.points = [*self.points[old:], (since, passed)]
        return True

    def at(self, due: int, now: int, lowest: float | None) -> float | None:
        """Where a lane begins whose first message was due then, None if nothing is known.
        ``lowest``: of those that wait now."""
        if not self.points:
            return None
        if due < self.points[0][0]:
            return self.points[0][1]
        for (since, before), (until, after) in pairwise(self.points):
            if since <= due < until:
                return before + (after - before) * (due - since) / (until - since)
        since, last = self.points[-1]
        if lowest is None or lowest <= last:
            return last
        # Since it was written last, those that wait have come as far as the lowest of them.
        return last + (lowest - last) * (
            min(1.0, (due - since) / (now - since)) if now > since else 1
        )


class Join(NamedTuple):
    """Where a lane begins that comes to a set of limits: where the others were when its first
    message was due, so that it gains nothing by coming late or by coming back, and loses nothing if
    it was found late. While nothing waits for the same limits, not before ``others`` that wait for
    some of them. If nothing is known of the set: where those are that wait for the same limits, or
    for some of them, or where those are that waited last."""

    clock: LimitClock
    lowest: float | None
    others: float | None
    idle: float

    def at(self, due: int, now: int) -> float:
        known = self.clock.at(due, now, self.lowest)
        ahead = self.others if self.lowest is None else self.lowest
        if known is None:
            return self.idle if ahead is None else ahead
        return known if self.lowest is not None or ahead is None else max(known, ahead)
