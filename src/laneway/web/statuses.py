"""Which status of HTTP an error has."""

from laneway.errors import (
    ConnectionUnavailable,
    CountChanged,
    DatabaseFailed,
    InvalidInput,
    LanewayError,
    NotAllowed,
    PublishRefused,
    SchemaError,
)

_STATUS: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((NotAllowed,), 403),
    ((InvalidInput,), 400),
    ((LookupError,), 404),
    ((PublishRefused, CountChanged), 409),
    ((ConnectionUnavailable, DatabaseFailed, SchemaError), 503),
)


class NotFound(LanewayError, LookupError):
    """There is no such page, message, channel or verb."""


def status_of(error: Exception) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
