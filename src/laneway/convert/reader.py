"""What all readers share: a reader is made once for an annotation, and called for each value."""

from collections.abc import Callable
from typing import Any, NamedTuple

from laneway.errors import DecodeError, shown

REFUSALS = (
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    AssertionError,
    AttributeError,
)
"""What a class raises for values that it does not take. All else, such as a connection that is
lost, says nothing about the payload."""


class Notes:
    """How well a value fits, which is only asked where several types do."""

    __slots__ = ("absent", "dropped", "untyped")

    def __init__(self) -> None:
        self.dropped = 0
        """Keys that the type has no field for."""
        self.untyped = 0
        """Objects that were left as they are, or are mere mappings."""
        self.absent = 0
        """Fields that took their default."""

    @property
    def misfit(self) -> tuple[int, int, int]:
        return self.dropped, self.untyped, self.absent

    def add(self, other: "Notes") -> None:
        self.dropped += other.dropped
        self.untyped += other.untyped
        self.absent += other.absent


Read = Callable[[Any, Notes], Any]


class Reader(NamedTuple):
    """How to read a type out of JSON's values."""

    read: Read
    """Raises DecodeError, or another of REFUSALS."""
    text: Read | None = None
    """The same for a bare text, which a payload or a key can be; None if no value of it is one. A
    UUID | str is a str there: a UUID is published as JSON."""
    raw: bool = False
    """Whether a value of it may be bytes as they are."""
    never: str | None = None
    """Why no value at all can be read, if so."""


Build = Callable[[Any], Reader]


def unreadable(why: str) -> Reader:
    def read(value: Any, notes: Notes) -> Any:
        raise DecodeError(why)

    return Reader(read, never=why)


def expect(value: Any, holds: bool, wanted: Any) -> Any:
    if not holds:
        raise DecodeError(f"{shown(value)} is no {name_of(wanted)}")
    return value


def name_of(wanted: Any) -> str:
    return getattr(wanted, "__qualname__", None) or str(wanted)


def told(error: BaseException) -> str:
    """What an error says; an assertion may say nothing."""
    return str(error) or type(error).__name__
