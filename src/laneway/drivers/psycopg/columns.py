"""Columns as PostgreSQL's binary arrays.

psycopg asks every item of a list what it is; in a batch of thousands that costs more than all else
that the client does. Whole columns of one plain type need no such care.
"""

import sys
from array import array
from collections.abc import Iterable
from itertools import chain
from struct import Struct
from typing import Any, ClassVar

from psycopg.abc import AdaptContext, DumperKey, PyFormat
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.array import ListBinaryDumper

_HEAD = Struct("!iiIii").pack  # dimensions, nulls, type of the elements, length, first index
_LENGTH = Struct("!i").pack
_EIGHT = array("I", (8).to_bytes(4))  # a number's length
_SWAPPED = sys.byteorder == "little"


class ColumnDumper(Dumper):
    """For every list: a plain column goes at once, anything else psycopg's way."""

    format = Format.BINARY

    def __init__(self, cls: type, context: AdaptContext | None = None) -> None:
        super().__init__(cls, context)
        self._slow = ListBinaryDumper(cls, context)

    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:
        kind = _kind(obj)
        return self._slow.get_key(obj, format) if kind is None else (ColumnDumper, kind)

    def upgrade(self, obj: list[Any], format: PyFormat) -> Any:
        kind = _kind(obj)
        return self._slow.upgrade(obj, format) if kind is None else _COLUMNS[kind](self.cls)

    def dump(self, obj: list[Any]) -> Any:
        return self._slow.dump(obj)


class _Column(Dumper):
    format = Format.BINARY
    element: ClassVar[int]

    def dump(self, obj: list[Any]) -> bytes:
        return b"".join(chain((_HEAD(1, 0, self.element, len(obj), 1),), self.parts(obj)))

    def parts(self, items: list[Any]) -> Iterable[bytes]:
        """Each item after its length."""
        return chain.from_iterable(zip(map(_LENGTH, map(len, items)), items, strict=True))


class _Bytes(_Column):
    oid, element = 1001, 17


class _Texts(_Column):
    oid, element = 1009, 25

    def parts(self, items: list[str]) -> Iterable[bytes]:
        return super().parts([item.encode() for item in items])


class _Numbers(_Column):
    oid, element = 1016, 20

    def parts(self, items: list[int]) -> Iterable[bytes]:
        """Woven without a call for each: a length, an upper and a lower half."""
        numbers = array("q", items)
        if _SWAPPED:
            numbers.byteswap()
        halves = array("I", numbers.tobytes())
        words = _EIGHT * (3 * len(items))
        words[1::3], words[2::3] = halves[0::2], halves[1::2]
        return (words.tobytes(),)


_COLUMNS: dict[type, type[_Column]] = {bytes: _Bytes, str: _Texts, int: _Numbers}


def _kind(items: list[Any]) -> type | None:
    """The type of all items, if they are plain ones of one type."""
    kinds = set(map(type, items))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is int and not -(2**63) <= min(items) <= max(items) < 2**63:
        return None
    return kind if kind in _COLUMNS else None
