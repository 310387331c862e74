"""When schedules tick: the changes of the clocks, leap years, and catching up by the short way."""

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from laneway.cron import last_tick, next_tick, ticks
from laneway.errors import DriverMissing, InvalidSchedule
from laneway.schedule import Schedule, ScheduleTerms
from laneway.schedule_rules import MOST_TICKS, firing, planned

EPOCH = datetime(2025, 1, 1, tzinfo=UTC)


def terms(cron: str | None = None, zone: str = "UTC", **changes: object) -> ScheduleTerms:
    made = ScheduleTerms(
        queue="q",
        name="s",
        cron=cron,
        every=None,
        zone=zone,
        start=None,
        catch_up="once",
        grace=timedelta(minutes=1),
        topic=None,
        channel="c",
        kind="",
        key=None,
        key_window=None,
        priority=0,
        headers={},
        content_type="application/json",
        payload=b"1",
        expires_in=None,
        max_attempts=20,
        key_scope="kind",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def local(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next ticks, in local time with their offset."""
    place = ZoneInfo(zone)
    begin = datetime.fromisoformat(after).replace(tzinfo=place)
    found = islice(ticks(terms(cron, zone), EPOCH, begin), count)
    return [tick.astimezone(place).strftime("%m-%d %H:%M %z") for tick in found]


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        # Spring: a time that does not exist ticks once the clocks have moved.
        (
            "30 2 * * *",
            "Europe/Zurich",
            "2027-03-27T12:00",
            ["03-28 03:00 +0200", "03-29 02:30 +0200"],
        ),
        (
            "30 2 * * *",
            "America/New_York",
            "2027-03-13T12:00",
            ["03-14 03:00 -0400", "03-15 02:30 -0400"],
        ),
        # Two times in the hour that does not exist are one.
        (
            "15,45 2 * * *",
            "Europe/Zurich",
            "2027-03-27T12:00",
            ["03-28 03:00 +0200", "03-29 02:15 +0200", "03-29 02:45 +0200"],
        ),
        # Autumn: a time that exists twice ticks the first time.
        (
            "30 2 * * *",
            "Europe/Zurich",
            "2027-10-30T12:00",
            ["10-31 02:30 +0200", "11-01 02:30 +0100"],
        ),
        # Every hour is every real hour.
        (
            "0 * * * *",
            "Europe/Zurich",
            "2027-10-31T01:30",
            ["10-31 02:00 +0200", "10-31 02:00 +0100", "10-31 03:00 +0100"],
        ),
        (
            "0 * * * *",
            "Europe/Zurich",
            "2027-03-28T00:30",
            ["03-28 01:00 +0100", "03-28 03:00 +0200", "03-28 04:00 +0200"],
        ),
        # Half an hour, on an island.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2027-10-02T12:00",
            ["10-03 02:30 +1100", "10-04 02:15 +1100"],
        ),
        # Where the clocks change at midnight.
        (
            "0 0 * * *",
            "America/Santiago",
            "2026-09-05T12:00",
            ["09-06 01:00 -0300", "09-07 00:00 -0300"],
        ),
        # A day that never was.
        (
            "0 12 * * *",
            "Pacific/Apia",
            "2011-12-29T00:00",
            ["12-29 12:00 -1000", "12-31 00:00 +1400", "12-31 12:00 +1400"],
        ),
        ("0 12 29 2 *", "UTC", "2027-01-01T00:00", ["02-29 12:00 +0000", "02-29 12:00 +0000"]),
        (
            "0 6 * * MON",
            "Asia/Kathmandu",
            "2027-01-01T00:00",
            ["01-04 06:00 +0545", "01-11 06:00 +0545"],
        ),
    ],
)
def test_ticks_around_the_edges(cron: str, zone: str, after: str, expected: list[str]) -> None:
    assert local(cron, zone, after, len(expected)) == expected


def test_in_the_second_of_two_equal_hours_the_first_ones_ticks_are_over() -> None:
    after = datetime(2027, 10, 31, 1, 10, tzinfo=UTC)  # ten past two, for the second time
    found = next_tick(terms("30 2 * * *", "Europe/Zurich"), EPOCH, after)
    assert found == datetime(2027, 11, 1, 1, 30, tzinfo=UTC)


crons = st.builds(
    lambda *fields: " ".join(fields),
    st.sampled_from(["*", "0", "30", "*/7", "5,35", "10-20/3"]),
    st.sampled_from(["*", "0", "2", "*/5", "1-3", "23"]),
    st.sampled_from(["*", "1", "15", "L", "*/10"]),
    st.sampled_from(["*", "3", "10", "*/4", "2"]),
    st.sampled_from(["*", "MON", "0", "1-5"]),
)
zones = st.sampled_from(
    ["UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "America/Santiago"]
)
moments = st.timedeltas(timedelta(0), timedelta(days=5 * 366)).map(lambda since: EPOCH + since)


@settings(max_examples=150, deadline=None)
@example("*/7 0 * 10 *", "Australia/Lord_Howe", EPOCH + timedelta(days=1032))
@example("0 */5 * * 0", "Australia/Lord_Howe", EPOCH + timedelta(days=67))
@example("0 */5 * 10 *", "Australia/Lord_Howe", EPOCH + timedelta(days=457))
@example("*/7 0 * * *", "Australia/Lord_Howe", EPOCH + timedelta(days=276))
@example("*/7 23 */10 10 0", "Australia/Lord_Howe", EPOCH + timedelta(days=457))
@given(crons, zones, moments)
def test_ticks_rise_and_do_not_depend_on_where_one_begins(
    cron: str, zone: str, after: datetime
) -> None:
    wanted = terms(cron, zone)
    found = list(islice(ticks(wanted, EPOCH, after), 20))
    assert found == sorted(set(found)) and found[0] > after
    for before, tick in pairwise(found):
        assert next_tick(wanted, EPOCH, before) == tick
        between = before + (tick - before) / 2
        assert next_tick(wanted, EPOCH, between) == tick


@settings(max_examples=100, deadline=None)
@given(crons, zones, moments, st.timedeltas(timedelta(0), timedelta(days=40)))
def test_the_last_tick_is_found_by_the_short_way(
    cron: str, zone: str, after: datetime, down: timedelta
) -> None:
    wanted = terms(cron, zone)
    first = next_tick(wanted, EPOCH, after)
    until = first + down
    slow = first
    for tick in ticks(wanted, EPOCH, first):
        if tick > until:
            break
        slow = tick
    assert last_tick(wanted, EPOCH, first, until) == slow


@given(
    moments,
    st.timedeltas(timedelta(seconds=1), timedelta(days=3)),
    st.timedeltas(timedelta(0), timedelta(days=30)),
)
def test_intervals_are_counted_from_their_anchor(
    anchor: datetime, every: timedelta, later: timedelta
) -> None:
    wanted = terms(every=every)
    tick = next_tick(wanted, anchor, anchor + later)
    assert tick > anchor + later and (tick - anchor) % every == timedelta(0)
    assert tick - every <= anchor + later
    assert last_tick(wanted, anchor, tick, tick + later) <= tick + later


def stored(found: ScheduleTerms, now: datetime) -> Schedule:
    made = planned(found, None, now)
    assert made is not None
    return made


def test_a_year_of_minutes_is_caught_up_at_once_or_in_pieces() -> None:
    begin = datetime(2027, 1, 1, tzinfo=UTC)
    later = begin + timedelta(days=365)
    last = firing(stored(terms("* * * * *", "Europe/Zurich"), begin), later)
    assert list(last.ticks) == [later] and last.next_at == later + timedelta(minutes=1)
    everything = firing(stored(terms("* * * * *", catch_up="all"), begin), later)
    assert len(everything.ticks) == MOST_TICKS
    assert everything.next_at == everything.ticks[-1] + timedelta(minutes=1)


def test_a_zone_that_has_vanished_puts_the_schedule_aside() -> None:
    begin = datetime(2027, 1, 1, tzinfo=UTC)
    gone = replace(stored(terms("0 3 * * *", "Europe/Zurich"), begin), zone="Europe/Vanished")
    found = firing(gone, begin + timedelta(days=1))
    assert found.ticks == () and found.next_at == gone.next_at
    move = found.move([], begin + timedelta(days=1))
    assert move.error and "Europe/Vanished" in move.error
    assert move.next_at == gone.next_at and move.look_at > begin + timedelta(days=1)


def test_without_cronsim_cron_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(DriverMissing, match=r"laneway\[cron\]"):
        next_tick(terms("0 3 * * *"), EPOCH, EPOCH)
    assert next_tick(terms(every=timedelta(hours=1)), EPOCH, EPOCH) == EPOCH + timedelta(hours=1)


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 1 1 1#9", "1#2/3 * * * *"])
def test_what_never_ticks_is_refused(cron: str) -> None:
    with pytest.raises(InvalidSchedule):
        next_tick(terms(cron), EPOCH, EPOCH)
