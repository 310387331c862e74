"""What may be passed in: checked before anything is written.

Values of subclasses (a StrEnum, pandas' Timestamp) come out as the plain type, because drivers
refuse lists of mixed types and have ideas of their own about enums.
"""

from collections.abc import Iterable, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from typing import Any

from penstock.contract import BATCH
from penstock.errors import InvalidOption, InvalidTime, shown
from penstock.names import check_name

SHORTEST_LEASE = timedelta(seconds=1)
LONGEST_LEASE = timedelta(days=1)
LONGEST_DELAY = timedelta(days=100 * 366)
MOST_TEXT = 1000
_ZERO = timedelta(0)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def check_lease(value: object) -> timedelta:
    if not isinstance(value, timedelta):
        raise InvalidTime(f"the lease must be a timedelta, not {type(value).__name__}")
    if not SHORTEST_LEASE <= value <= LONGEST_LEASE:
        raise InvalidTime(f"the lease is {value}: it must be between one second and one day")
    return _plain_length(value)


def check_length(what: str, value: object) -> timedelta:
    """A delay or another length of time that may be zero."""
    if not isinstance(value, timedelta):
        raise InvalidTime(f"{what} must be a timedelta, not {type(value).__name__}")
    if not _ZERO <= value <= LONGEST_DELAY:
        raise InvalidTime(f"{what} is {value}: it must not be negative or above a century")
    return _plain_length(value)


def check_time(what: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidTime(f"{what} must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidTime(
            f"{what} is {value.isoformat()} without a time zone: "
            "use datetime.now(timezone.utc), or .astimezone() for local time"
        )
    if value.year in (MINYEAR, MAXYEAR):
        _check_year(what, value)
    return value if type(value) is datetime else datetime.combine(value.date(), value.timetz())


def _check_year(what: str, value: datetime) -> None:
    """What is the year 9999 there may be the year 10,000 in UTC, which nobody could read; and the
    very first and last moments stand for infinity in some drivers."""
    try:
        fine = _FIRST < value.astimezone(UTC) < _LAST
    except OverflowError:
        fine = False
    if not fine:
        raise InvalidTime(
            f"{what} is {value.isoformat()}: it must lie inside of the years 1 to 9999 in UTC; "
            "leave it out if there is none"
        )


def check_delay_or_at(
    delay: timedelta | None, at: datetime | None, names: tuple[str, str] = ("delay", "at")
) -> tuple[timedelta | None, datetime | None]:
    if delay is not None:
        if at is not None:
            raise InvalidTime(f"{names[0]} and {names[1]} exclude each other: give one")
        return check_length(names[0], delay), None
    return None, None if at is None else check_time(names[1], at)


def check_number(what: str, value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidOption(f"{what} must be an int, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidOption(f"{what} is {shown(value)}: it must be between {least} and {most}")
    return int(value)


def check_limit(value: object) -> int:
    return check_number("limit", value, 1, BATCH)


def check_ids(values: Iterable[int]) -> list[int]:
    numbers = check_list("ids", values)
    return [check_number("a message id", value, 1, 2**63 - 1) for value in numbers]


def check_list(what: str, values: object) -> list[Any]:
    """Many values: a text is one, and a list of its letters is never meant."""
    if isinstance(values, str | bytes | bytearray):
        raise InvalidOption(f"{what} must be a list, not the text {shown(values)}")
    if not isinstance(values, Iterable):
        raise InvalidOption(f"{what} must be a list, not {type(values).__name__}")
    return list(values)


def check_choice(what: str, value: object, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidOption(f"{what} is {shown(value)}: use one of {', '.join(choices)}")
    return str.__str__(value)


def check_queues(values: Iterable[str]) -> tuple[str, ...]:
    listed = check_list("queues", values)
    names = tuple(dict.fromkeys(check_name("queue", value) for value in listed))
    if not names:
        raise InvalidOption("queues is empty: name at least one queue")
    return names


def check_storable(what: str, value: object, most: int = MOST_TEXT) -> str:
    """Free text for the database: what it cannot hold is replaced, not refused; what is too long
    is cut."""
    if not isinstance(value, str):
        raise InvalidOption(f"{what} must be str, not {type(value).__name__}")
    kept = value[:most].replace("\0", "\N{SYMBOL FOR NULL}")
    return kept.encode("utf-8", "replace").decode()


def _plain_length(value: timedelta) -> timedelta:
    if type(value) is timedelta:
        return value
    return timedelta(value.days, value.seconds, value.microseconds)
