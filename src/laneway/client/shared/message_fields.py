"""What a claimed message knows about itself, in both worlds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

from laneway.payload import decode, decode_json, decode_text, keep_result_of
from laneway.plan import ClaimColumn as Column
from laneway.plan import Row
from laneway.shared_limits import limits_of, names_in

T = TypeVar("T")

_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
_AFTER_LAST = 253_402_300_800.0


def leases_of(messages: Iterable["MessageFields"]) -> list[Row]:
    """Their leases: the rows as they came. Batches come by the thousand, and every object that is
    made for each message is paid for twice, when it is made and by the garbage collector."""
    return [message._row for message in messages]


class MessageFields:
    """Keeps the row as it came; see ``contract.Taken`` for its columns."""

    __slots__ = ("_headers", "_row", "claimed_at", "until")

    def __init__(self, row: Row, claimed_at: datetime, until: datetime) -> None:
        self._row = row
        self.claimed_at = claimed_at
        self.until = until
        """When the lease ends, by the database's clock."""

    @property
    def id(self) -> int:
        return self._row[Column.ID]  # type: ignore[no-any-return]

    @property
    def fence(self) -> int:
        """The number of the lease: higher at every claim, for stores that can compare it."""
        return self._row[Column.FENCE]  # type: ignore[no-any-return]

    @property
    def queue(self) -> str:
        return self._row[Column.QUEUE]  # type: ignore[no-any-return]

    @property
    def channel(self) -> str:
        return self._row[Column.CHANNEL]  # type: ignore[no-any-return]

    @property
    def kind(self) -> str:
        return self._row[Column.KIND]  # type: ignore[no-any-return]

    @property
    def priority(self) -> int:
        return self._row[Column.PRIORITY]  # type: ignore[no-any-return]

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self._row[Column.ATTEMPT]  # type: ignore[no-any-return]

    @property
    def failures(self) -> int:
        """How many tries have failed since the last progress; what ``max_attempts`` bounds."""
        return self._row[Column.SPENT]  # type: ignore[no-any-return]

    @property
    def max_attempts(self) -> int:
        return self._row[Column.MAX_ATTEMPTS]  # type: ignore[no-any-return]

    @property
    def due(self) -> datetime:
        return _time(self._row[Column.DUE])

    @property
    def published_at(self) -> datetime:
        return _time(self._row[Column.PUBLISHED_AT])

    @property
    def first_published_at(self) -> datetime:
        """When it was published before any redrive."""
        return _time(self._row[Column.FIRST_PUBLISHED_AT])

    @property
    def expires_at(self) -> datetime | None:
        seconds = self._row[Column.EXPIRES_AT]
        return None if seconds is None else _time(seconds)

    @property
    def key(self) -> str | None:
        return self._row[Column.KEY]  # type: ignore[no-any-return]

    @property
    def content_type(self) -> str:
        return self._row[Column.CONTENT_TYPE]  # type: ignore[no-any-return]

    @property
    def headers(self) -> Mapping[str, Any]:
        try:
            return self._headers
        except AttributeError:
            text = self._row[Column.HEADERS]
            self._headers: Mapping[str, Any] = decode_json(text) if text else {}
            return self._headers

    @property
    def limits(self) -> Sequence[str]:
        """The shared limits that it names."""
        names = limits_of(self._row[Column.HEADERS])
        return () if names is None else tuple(names_in(names))

    @property
    def keep_result(self) -> timedelta | None:
        """For how long its result is kept; None if it is not."""
        return keep_result_of(self._row[Column.HEADERS])

    @property
    def state_type(self) -> str | None:
        return self._row[Column.STATE_TYPE]  # type: ignore[no-any-return]

    @property
    def state(self) -> bytes | None:
        """What the last defer saved."""
        return self._row[Column.STATE]  # type: ignore[no-any-return]

    @property
    def payload(self) -> bytes:
        return self._row[Column.PAYLOAD]  # type: ignore[no-any-return]

    @property
    def _waited(self) -> int | None:
        """Milliseconds between the claim and the handler's start, if that was noticeably later."""
        return None

    @property
    def cancel_requested(self) -> bool:
        """Whether an operator asked a worker to cancel this message: time to stop."""
        return False

    @property
    def lost(self) -> bool:
        """Whether a worker has found out that the lease is no longer ours: time to stop."""
        return False

    def json(self) -> Any:
        """The payload as JSON; raises DecodeError."""
        return decode_json(self.payload)

    def text(self) -> str:
        """The payload as text; raises DecodeError."""
        return decode_text(self.payload)

    def state_json(self) -> Any:
        """The saved state as JSON, None if there is none."""
        return None if self.state is None else decode_json(self.state)

    @overload
    def decode(self, wanted: type[T]) -> T: ...
    @overload
    def decode(self, wanted: Any) -> Any: ...
    def decode(self, wanted: Any) -> Any:
        """The payload as bytes, str, dict, list, a dataclass, a msgspec.Struct or a pydantic model.

        Raises DecodeError if it is none.

        >>> order = message.decode(Order)
        """
        return decode(self.payload, self.content_type, wanted)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} {self.id} of {self.queue}/{self.channel}, fence {self.fence}>"


def _time(seconds: float) -> datetime:
    """Python has neither SQL's infinity nor the year 10,000, to which the last one is rounded."""
    if seconds >= _AFTER_LAST or math.isinf(seconds):
        return _LAST if seconds > 0 else _FIRST
    return datetime.fromtimestamp(seconds, UTC)
