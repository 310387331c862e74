"""Durations: every parameter that is one takes a ``timedelta`` or a number of seconds."""

import math
from datetime import timedelta

from .errors import InvalidTime, shown

Duration = timedelta | float
"""A timedelta, or seconds: ``timedelta(minutes=1)`` is the same as ``60`` and ``60.0``."""

CENTURY = timedelta(days=100 * 366)
_ZERO = timedelta(0)


def check_duration(
    what: str, value: object, least: timedelta = _ZERO, most: timedelta = CENTURY
) -> timedelta:
    """The duration as a plain timedelta; raises InvalidTime for anything that is none, and for
    what is not between ``least`` and ``most``."""
    length = value if value.__class__ is timedelta else _converted(what, value)
    assert isinstance(length, timedelta)
    if not least <= length <= most:
        raise InvalidTime(f"{what} is {_shown(value)}: {_range(least, most)}")
    return length


def to_seconds(value: Duration) -> float:
    """A duration that was checked before, in seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _converted(what: str, value: object) -> timedelta:
    if isinstance(value, timedelta):
        # A subclass, as pandas has one: drivers want the plain type.
        return timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTime(
            f"{what} is {shown(value)}: give a number of seconds or a timedelta, such as "
            "timedelta(minutes=5)"
        )
    try:
        if not math.isfinite(value):
            raise InvalidTime(f"{what} is {value}: it must be a finite number of seconds")
        return timedelta(seconds=value)
    except OverflowError:  # longer than any timedelta, or an int beyond all floats
        raise InvalidTime(f"{what} is {_shown(value)}: {_range(_ZERO, CENTURY)}") from None


def _shown(value: object) -> str:
    return str(value) if isinstance(value, timedelta) else f"{shown(value)} seconds"


def _range(least: timedelta, most: timedelta) -> str:
    if most != CENTURY:
        return f"it must be between {_words(least)} and {_words(most)}"
    return "it must not be negative or longer than a century"


def _words(length: timedelta) -> str:
    if length.days and not length.seconds:
        return f"{length.days} day" if length.days == 1 else f"{length.days} days"
    seconds = length.total_seconds()
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"
