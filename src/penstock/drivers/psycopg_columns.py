"""Columns as PostgreSQL's binary arrays.

psycopg asks every item of a list what it is; in a batch of thousands that costs more than all else
that the client does. Whole columns of one plain type need no such care.
"""

from collections.abc import Iterable
from itertools import chain, repeat
from struct import Struct
from typing import Any, ClassVar

from psycopg.abc import AdaptContext, DumperKey, PyFormat
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.array import ListBinaryDumper

_HEAD = Struct("!iiIii").pack  # dimensions, nulls, type of the elements, length, first index
_LENGTH = Struct("!i").pack
_NUMBER = Struct("!iq").pack


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
        return map(_NUMBER, repeat(8), items)


_COLUMNS: dict[type, type[_Column]] = {bytes: _Bytes, str: _Texts, int: _Numbers}


def _kind(items: list[Any]) -> type | None:
    """The type of all items, if they are plain ones of one type."""
    kinds = set(map(type, items))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is int and not -(2**63) <= min(items) <= max(items) < 2**63:
        return None
    return kind if kind in _COLUMNS else None
