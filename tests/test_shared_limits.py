"""Shared limits: who starts, whose turn it is, and what a message's headers name."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from laneway import Message, NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.drivers.runner import drive
from laneway.engines.fairness import (
    Lane,
    Limited,
    LimitedClaims,
    LimitSteps,
    LimitWaits,
    shares,
)
from laneway.engines.findings import limits_findings
from laneway.engines.shared_limits import (
    LimitPlans,
    LimitState,
    Passes,
    decide,
    room_of,
)
from laneway.errors import InvalidName, InvalidOption
from laneway.limits import Breaker, LimitClock
from laneway.model import ClaimStatus
from laneway.plan import Plan, Row, Taken
from laneway.shared_limits import SharedLimit, check_limits, limits_of, why_held

SECOND = 1_000_000


def _state(name: str, concurrency: int | None = None, rate: float | None = None) -> LimitState:
    burst = None if rate is None else 1
    return LimitState(name, concurrency, rate, burst, None, None, 0, 0, 0)


def test_a_message_takes_all_of_its_limits_or_none() -> None:
    states = {"a": _state("a", 2), "b": _state("b", 1)}
    found = [Limited(1, 1, "a,b"), Limited(2, 1, "a,b"), Limited(3, 1, "a")]
    start, wait = decide(found, states, [], set(), 0)
    assert [one.id for one in start] == [1, 3] and [one.id for one in wait] == [2]
    assert (states["a"].running, states["b"].running) == (2, 1)


def test_nothing_passes_what_waits_for_the_same_limits() -> None:
    found = [Limited(1, 1, "a"), Limited(2, 1, "a")]
    start, _ = decide(found, {"a": _state("a", 5)}, ["a"], {2}, 0)
    assert [one.id for one in start] == [2]


def test_slots_of_what_is_about_to_start_are_not_for_others() -> None:
    state = _state("a", 2)
    state.coming = 2
    assert not state.lets(0, released=False) and state.lets(0, released=True)
    rated = LimitState("a", None, 2.0, 2, None, None, 0, 0, 1)
    assert rated.lets(0, released=False) and rated.room(0) == (1, None)
    rated.start(0)
    assert not rated.lets(0, released=False) and rated.lets(0, released=True)
    assert rated.room(0)[0] == 0 and rated.room(0)[1] is not None


class Passing(LimitPlans):
    """Sets of limits with what their lanes have had."""

    def __init__(self, passes: dict[str, Passes]) -> None:
        self.passes = passes

    def _limit_all_sets(self) -> Plan[list[str]]:
        yield from ()
        return list(self.passes)

    def _limit_passes(self, sets: Sequence[str]) -> Plan[dict[str, Passes]]:
        yield from ()
        return {one: self.passes.get(one, Passes(None, None)) for one in sets}

    def _limit_clock(self, limits: str) -> Plan[LimitClock]:
        yield from ()
        return LimitClock()

    def joins(self, limits: str) -> float:
        return drive(self._joins([limits]), lambda statement: ())[limits].at(0, 0)


def test_who_comes_to_wait_joins_where_the_others_are() -> None:
    plans = Passing({"a": Passes(5.0, 9.0), "b": Passes(3.0, None), "c": Passes(None, 7.0)})
    assert plans.joins("a") == 5.0 and plans.joins("a,b") == 3.0
    assert plans.joins("c") == plans.joins("c,d") == 7.0
    assert plans.joins("d") == 0.0


def test_who_was_due_earlier_joins_where_the_others_were_then() -> None:
    clock = LimitClock()
    assert clock.at(0, 0, None) is None
    for second in range(11):
        assert clock.advance(float(second), second * SECOND)
        assert not clock.advance(second + 0.5, second * SECOND + SECOND // 2), "once a second"
    now = 11 * SECOND
    assert clock.at(-SECOND, now, None) == 0 and clock.at(now, now, None) == 10
    assert clock.at(5 * SECOND // 2, now, None) == 2.5
    assert clock.at(now, now, 11.0) == 11, "as far as the lowest that waits has come since"
    assert LimitClock.read(clock.written()).points == clock.points
    # One that was due and not found starts: all who were due since then begin no later than it.
    assert clock.advance(4.0, now)
    assert clock.at(5 * SECOND, now, None) == clock.at(now, now, None) == 4
    assert clock.at(3 * SECOND, now, None) == 3
    assert clock.advance(5.0, 100 * SECOND) and clock.points[0] == (5 * SECOND, 4.0)


def test_the_rate_counts_by_the_time_of_the_claim() -> None:
    state = _state("a", rate=2)
    state.start(0)
    assert not state.lets(SECOND // 2 - 1, released=True)
    assert state.lets(SECOND // 2, released=True)
    assert state.room(0) == (0, SECOND // 2)


def test_the_lane_that_had_the_least_is_next() -> None:
    lanes = [Lane(1, 0.0, 1, None), Lane(2, 0.0, 3, None), Lane(3, 5.0, 1, None)]
    assert shares(lanes, 8) == {1: 2, 2: 6}
    assert shares([Lane(1, 0.0, 1, 1)], 4) == {1: 1}
    assert shares([], 4) == {}


def test_room_is_that_of_the_fullest() -> None:
    states = {"a": _state("a", 7), "b": _state("b", 3)}
    assert room_of("a,b", states, 0, 10) == (3, None)
    assert room_of("a,unknown", states, 0, 5) == (5, None)
    states["b"].running = 3
    assert room_of("a,b", states, 0, 10)[0] == 0


def test_headers_that_name_no_limits_are_none() -> None:
    assert limits_of('{"laneway-limits": ["b", "a", "b"]}') == "a,b"
    for text in (
        None,
        "{}",
        '{"laneway-limits": "a"}',
        '{"laneway-limits": [1]}',
        '["laneway-limits"]',
    ):
        assert limits_of(text) is None
    assert limits_of('{"laneway-limits": ["a", "b", "c", "d", "e"]}') is None
    assert limits_of('"laneway-limits": broken') is None


def test_names_are_checked() -> None:
    assert check_limits(("b", "a")) == ["a", "b"]
    with pytest.raises(InvalidOption):
        check_limits("abc")
    with pytest.raises(InvalidName):
        check_limits(["a,b"])
    with pytest.raises(InvalidName):
        check_limits(["x" * 101])


def test_why_a_channel_waits_is_said_in_words() -> None:
    known = {"a": SharedLimit("a", 2, running=1), "b": SharedLimit("b", 1, running=1)}
    assert why_held("a,b", known) == "limit b: 1 of 1 running"
    assert why_held("r", {"r": SharedLimit("r", rate=5.0, burst=5)}) == "limit r: 5 starts a second"


def test_the_doctor_names_limits_that_nobody_has_set() -> None:
    known = [SharedLimit("a", 2), SharedLimit("b", rate=1.0, burst=1), SharedLimit("typo")]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    (finding,) = limits_findings(known, now)
    assert finding.level == "warn" and "typo" in finding.message
    assert [one.level for one in limits_findings(known[:2], now)] == ["ok"]


def test_the_doctor_names_breakers_that_stay_open() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    fine, short = SharedLimit("fine", breaker=Breaker()), now - timedelta(minutes=9)
    assert limits_findings([fine], now)[1].level == "ok"
    known = [fine, SharedLimit("short", breaker=Breaker(), opened_at=short)]
    assert limits_findings(known, now)[1].level == "ok"
    known.append(SharedLimit("long", breaker=Breaker(), opened_at=now - timedelta(hours=1)))
    _, finding = limits_findings(known, now)
    assert (finding.check, finding.level) == ("breakers", "warn")
    assert "long since 2026-01-01 11:00" in finding.message and "short" not in finding.message


class Calls:
    """The steps of a claim, each with prepared answers; notes in which order they are called."""

    def __init__(self, rows: Sequence[int], waiting: int) -> None:
        self.rows, self.waiting = list(rows), waiting
        self.order: list[str] = []

    def claim(self) -> Plan[Taken]:
        yield from ()
        self.order.append("claim")
        found = [self.rows.pop(0)] if self.rows else []
        status = ClaimStatus.GOT if found else ClaimStatus.EMPTY
        return Taken([_row(id) for id in found], status, None, None, None, limited=True)

    def start(self, among: Sequence[Limited]) -> Plan[tuple[Taken, LimitWaits]]:
        yield from ()
        self.order.append("start")
        rows = [_row(0)] if self.waiting else []
        self.waiting -= len(rows)
        taken = Taken(rows, ClaimStatus.GOT, timedelta(0), None, None)
        return taken, LimitWaits(0, self.waiting > 0, timedelta(seconds=1))

    def admit(self, found: Sequence[Limited], taken: Taken) -> Plan[set[int]]:
        raise AssertionError("no message names a limit")

    def sweep(self, waiting: Sequence[Limited]) -> Plan[None]:
        raise AssertionError("no message has to wait")


def _row(id: int) -> Row:
    return (id, 1, "q", "c", "", 0, 1, 20, 0.0, 0.0, 0.0, None, None, "", None)


def _claims(calls: Calls, count: int) -> None:
    claims = LimitedClaims()
    claims.known.add(("q",))
    steps = LimitSteps(calls.claim, calls.start, calls.admit, calls.sweep)
    for _ in range(count):
        drive(claims.claim(("q",), steps), lambda statement: ())


def test_what_waits_for_limits_and_what_does_not_take_turns() -> None:
    calls = Calls(range(1, 9), 8)
    _claims(calls, 16)
    assert calls.rows == [] and calls.waiting == 0
    assert calls.order == ["start", "claim"] * 8


def test_while_there_is_nothing_else_it_is_looked_for_seldom() -> None:
    calls = Calls([], 40)
    _claims(calls, 40)
    assert calls.waiting == 0 and calls.order.count("claim") <= 6


def test_what_started_without_waiting_is_charged_to_who_comes_to_wait(
    server: EmbeddedPostgres,
) -> None:
    """All were due at the same time, and many of one channel started before anything had to wait:
    so the other one, which was found later, catches up first."""
    with Queue(server.create_database("limits charged"), upkeep_every=None) as queue:
        queue.install()
        queue.limits["api"].set(concurrency=200)
        for channel in ("a", "b"):
            queue.publish_many([NewMessage(n, channel=channel, limits=["api"]) for n in range(160)])
        queue.channel("b").pause()
        begun = queue.claim(150)
        queue.limits["api"].set(concurrency=1)
        queue.channel("b").resume()
        for _ in range(5):
            assert not queue.claim(10)
        queue.complete(begun)
        served: list[str] = []
        while len(served) < 170:
            claim = queue.claim(1)
            served += [message.channel for message in claim]
            queue.complete(claim)
    assert len(begun) == 150
    assert served[:150] == ["b"] * 150, served
    assert served[150:].count("a") == 10


def test_a_lane_that_was_paused_makes_up_for_a_minute_only(server: EmbeddedPostgres) -> None:
    """Who waits while it is paused is served as if it had come a minute ago."""
    url = server.create_database("limits paused")
    with Queue(url, upkeep_every=None) as queue, psycopg.connect(url, autocommit=True) as eyes:
        queue.install()
        queue.limits["api"].set(concurrency=1)
        for channel in ("a", "b"):
            queue.publish_many([NewMessage(n, channel=channel, limits=["api"]) for n in range(100)])
        queue.publish(0, channel="c", limits=["api"], priority=1)
        held = queue.claim(1)
        for _ in range(5):
            assert not queue.claim(10)
        queue.complete(held)
        queue.channel("a").pause()
        for _ in range(40):
            queue.complete(queue.claim(1))
            # As if two seconds had passed.
            eyes.execute(
                "update laneway.limit_clock set times = array("
                "select t - interval '2 seconds' from unnest(times) t order by t)"
            )
        queue.channel("a").resume()
        served = [message.channel for _ in range(60) for message in _settled(queue)]
    behind = next(number for number, channel in enumerate(served) if channel == "b")
    assert 25 <= behind <= 35, served


def _settled(queue: Queue) -> Sequence[Message]:
    claim = queue.claim(1)
    queue.complete(claim)
    return list(claim)
