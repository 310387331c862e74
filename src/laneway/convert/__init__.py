"""JSON values to annotated Python types, strictly: a text is no number, nothing is guessed."""

from typing import Any

from laneway.errors import DecodeError

from .compile import reader_of
from .reader import REFUSALS, Notes, Read, Unresolved, name_of, one_of, told

__all__ = ["Unresolved", "convert", "never_decodable", "read_as", "reader_of"]


def convert(value: Any, wanted: Any) -> Any:
    """``value``, as it came out of JSON, as a ``wanted``; raises DecodeError if it is none."""
    return read_as(value, wanted, reader_of(wanted).read)


def read_as(value: Any, wanted: Any, read: Read) -> Any:
    """The same for those who have the reader of ``wanted`` already."""
    try:
        return read(value, Notes())
    except DecodeError:
        raise
    except RecursionError:
        raise DecodeError(f"the payload is nested too deeply for {name_of(wanted)}") from None
    except REFUSALS as error:
        raise DecodeError(f"the payload is not {one_of(wanted)}: {told(error)}") from error


def never_decodable(wanted: Any) -> str | None:
    """Why no payload at all can be a ``wanted``, None if some can; raises Unresolved if it names
    what does not exist (yet)."""
    return reader_of(wanted).never
