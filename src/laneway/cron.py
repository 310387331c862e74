"""When a schedule ticks: cron expressions in a time zone, and plain intervals.

A tick is a moment in UTC. Around a change of the clocks, expressions with a fixed hour and minute
follow Debian's cron: a time that does not exist ticks once the clocks have moved, and a time that
exists twice ticks the first time only; those with a star in hour or minute go by real time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

from .errors import InvalidSchedule, shown
from .extras import needs
from .schedule import ScheduleTerms
from .spelling import nearest

if TYPE_CHECKING:
    from cronsim import CronSim

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
# How far back to begin when only the last tick is wanted: a year of minutes need not be counted.
_WINDOWS = [timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366 * 8)]


_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_DAYS = timedelta(days=2)


def next_tick(terms: ScheduleTerms, anchor: datetime, after: datetime) -> datetime:
    """The first tick after a moment, in UTC.

    Raises InvalidSchedule for an expression or a zone that cannot be used, or that never ticks.
    """
    try:
        return next(ticks(terms, anchor, after))
    except OverflowError:
        raise InvalidSchedule(
            f"the schedule {shown(terms.name)} has no tick before the year 10,000: start it earlier"
        ) from None


def ticks(terms: ScheduleTerms, anchor: datetime, after: datetime) -> Iterator[datetime]:
    """All ticks after a moment, each later than the one before, none before ``start``."""
    if terms.start is not None:
        after = max(after, terms.start - timedelta(microseconds=1))
    if terms.every is not None:
        return _interval_ticks(terms.every, anchor, after)
    return _cron_ticks(terms.cron or "", terms.zone, after)


def last_tick(terms: ScheduleTerms, anchor: datetime, first: datetime, until: datetime) -> datetime:
    """The last tick from ``first`` (which is one) up to and including ``until``."""
    if terms.every is not None:
        return anchor + terms.every * ((until - anchor) // terms.every)
    for window in _WINDOWS:
        begin = until - window
        if begin <= first:
            break
        found = _last_between(ticks(terms, anchor, begin), until)
        if found is not None:
            return found
    return _last_between(ticks(terms, anchor, first), until) or first


def _last_between(found: Iterator[datetime], until: datetime) -> datetime | None:
    last = None
    for tick in found:
        if tick > until:
            break
        last = tick
    return last


def _interval_ticks(every: timedelta, anchor: datetime, after: datetime) -> Iterator[datetime]:
    number = max((after - anchor) // every + 1, 0)
    while True:
        yield anchor + every * number
        number += 1


def _cron_ticks(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    begun = after.astimezone(_zone(zone))
    moments, last = _moments(cron, begun, begun), after
    while (moment := next(moments, None)) is not None:
        # cronsim goes to the next day by whole hours: where clocks move by half of one (Lord Howe),
        # it comes into every later hour in its middle. Begin again where they moved.
        since = max(begun, _earlier(moment, _DAYS), key=datetime.timestamp)
        if _moved(since, moment):
            begun = _turn(since, moment)
            moments = _moments(cron, _earlier(begun, _SECOND), begun)
            continue
        tick = moment.astimezone(UTC)
        # The second of two equal hours begins with ticks that the first one had already.
        if tick > last:
            last = tick
            yield tick
    raise InvalidSchedule(f"the cron expression {shown(cron)} never ticks: no such day comes")


def _moments(cron: str, after: datetime, begun: datetime) -> Iterator[datetime]:
    """What cronsim finds, with an hour in which the clocks moved by half of one apart."""
    if _moved(_earlier(begun, timedelta(minutes=begun.minute)), begun):
        hour = begun.replace(second=0, microsecond=0) + timedelta(minutes=60 - begun.minute)
        for moment in _simulation(cron, after):
            if moment.timestamp() >= hour.timestamp():
                break
            yield moment
        after = _earlier(hour, _SECOND)
    yield from _simulation(cron, after)


def _turn(before: datetime, after: datetime) -> datetime:
    """The first minute with the offset of ``after``, which changed since ``before``."""
    low, high = before.astimezone(UTC), after.astimezone(UTC)
    while high - low > _MINUTE:
        middle = low + (high - low) / 2
        if _offset(middle.astimezone(after.tzinfo)) == _offset(after):
            high = middle
        else:
            low = middle
    return high.replace(second=0, microsecond=0).astimezone(after.tzinfo)


def _moved(before: datetime, after: datetime) -> bool:
    return bool((_offset(after) - _offset(before)) % _HOUR)


def _earlier(moment: datetime, span: timedelta) -> datetime:
    """In real time, whatever the clocks did."""
    return (moment.astimezone(UTC) - span).astimezone(moment.tzinfo)


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta(0)


def _simulation(cron: str, after: datetime) -> "CronSim":
    with needs("a cron expression", "cronsim", "cron"):
        from cronsim import CronSim, CronSimError
    expression = _ALIASES.get(cron.strip().lower(), cron)
    if len(expression.split()) != 5:
        raise InvalidSchedule(
            f"the cron expression {shown(cron)} has {len(expression.split())} fields instead of "
            "five (minute, hour, day, month, weekday): use every= for seconds"
        )
    try:
        return CronSim(expression, after)
    except (CronSimError, ValueError, AssertionError) as error:
        raise InvalidSchedule(
            f"the cron expression {shown(cron)} cannot be read: {error or 'not understood'}"
        ) from error


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        near = nearest(name, available_timezones(), 0.7)
        hint = (
            f"did you mean {near!r}?"
            if near
            else "use a name like 'Europe/Zurich', or install the zones with pip install "
            '"laneway[cron]"'
        )
        raise InvalidSchedule(f"the time zone {shown(name)} is not known here: {hint}") from error
