"""Times are stored as microseconds since 1970 in UTC."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR


def micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def length(value: timedelta) -> int:
    return value // _MICROSECOND


def moment(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=int(value))


def moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else moment(value)
