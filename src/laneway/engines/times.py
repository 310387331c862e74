"""Times as MySQL and SQLite store them: whole microseconds since 1970 in UTC."""

from datetime import UTC, datetime, timedelta
from typing import overload

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@overload
def micros(value: datetime | timedelta) -> int: ...
@overload
def micros(value: datetime | timedelta | None) -> int | None: ...
def micros(value: datetime | timedelta | None) -> int | None:
    """Exact: it does not go through a float."""
    if value is None:
        return None
    length = value - _EPOCH if isinstance(value, datetime) else value
    return length // _MICROSECOND


@overload
def moment(value: int) -> datetime: ...
@overload
def moment(value: int | None) -> datetime | None: ...
def moment(value: int | None) -> datetime | None:
    """MySQL's sums and maxima come as Decimal."""
    return None if value is None else _EPOCH + timedelta(microseconds=int(value))
