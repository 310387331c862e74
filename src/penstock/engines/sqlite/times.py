"""Times as SQLite keeps them: whole microseconds since 1970."""

from datetime import UTC, datetime, timedelta
from typing import overload

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@overload
def micros(value: datetime | timedelta) -> int: ...
@overload
def micros(value: datetime | timedelta | None) -> int | None: ...
def micros(value: datetime | timedelta | None) -> int | None:
    """Exact: no float is involved."""
    if value is None:
        return None
    length = value - _EPOCH if isinstance(value, datetime) else value
    return length // _MICROSECOND


@overload
def moment(value: int) -> datetime: ...
@overload
def moment(value: int | None) -> datetime | None: ...
def moment(value: int | None) -> datetime | None:
    return None if value is None else _EPOCH + timedelta(microseconds=value)
