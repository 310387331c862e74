"""What readers share, each of which is made once for an annotation and called for each value; and
annotations without what says nothing about the value, and the fields of classes.
"""

from collections.abc import Callable
from types import NoneType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    NewType,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from laneway.errors import DecodeError, shown, with_article

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
        raise DecodeError(f"{shown(value)} is not {one_of(wanted)}")
    return value


def name_of(wanted: Any) -> str:
    return getattr(wanted, "__qualname__", None) or str(wanted)


def one_of(wanted: Any) -> str:
    """``an int``; of bytes and None there is not one."""
    if wanted in (bytes, NoneType):
        return "bytes" if wanted is bytes else "None"
    return with_article(name_of(wanted))


def told(error: BaseException) -> str:
    """What an error says; an assertion may say nothing."""
    return str(error) or type(error).__name__


class Unresolved(DecodeError):
    """An annotation names what is not there: not imported, or not defined yet."""


def unresolved(owner: Any, error: Exception) -> Unresolved:
    return Unresolved(
        f"the annotations of {name_of(owner)} cannot be read ({error}): import what they name at "
        "run time, not only for type checkers"
    )


def bare(wanted: Any) -> Any:
    """What is meant: without Annotated and Final, a NewType's and an alias's own type, what a type
    variable stands for if nobody said it."""
    while True:
        if get_origin(wanted) in (Annotated, Final):
            wanted = get_args(wanted)[0]
        elif isinstance(wanted, NewType):
            wanted = wanted.__supertype__
        elif type(wanted).__name__ == "TypeAliasType":  # Python 3.12's "type A = …"
            wanted = wanted.__value__
        elif isinstance(wanted, TypeVar):
            return _anything_for(wanted)
        else:
            return wanted


def hints_of(wanted: Any) -> dict[str, Any]:
    """The annotations of a class's fields; of a generic one with what its variables stand for."""
    origin = get_origin(wanted) or wanted
    try:
        hints = get_type_hints(origin)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise unresolved(origin, error) from error
    meant = _variables(wanted)
    return {name: _filled_in(hint, meant) for name, hint in hints.items()} if meant else hints


def _anything_for(variable: TypeVar) -> Any:
    if variable.__constraints__:
        # A tuple of types, of any length: there is nothing to write | between.
        return Union[variable.__constraints__]  # noqa: UP007
    return Any if variable.__bound__ is None else variable.__bound__


def _variables(wanted: Any) -> dict[Any, Any]:
    """What the type variables stand for, as the annotation says or the class's bases."""
    origin = get_origin(wanted)
    if origin is not None:
        return dict(zip(getattr(origin, "__parameters__", ()), get_args(wanted), strict=False))
    if getattr(wanted, "__parameters__", ()):
        return {}
    meant: dict[Any, Any] = {}
    for base in getattr(wanted, "__orig_bases__", ()):
        if get_origin(base) is not None:
            meant |= _variables(base)
    return meant


def _filled_in(hint: Any, meant: dict[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return meant.get(hint, hint)
    open_variables = () if isinstance(hint, type) else getattr(hint, "__parameters__", ())
    if not open_variables:
        return hint
    return hint[tuple(meant.get(variable, variable) for variable in open_variables)]
