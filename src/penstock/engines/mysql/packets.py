"""How much goes into one statement: the server takes no more than ``max_allowed_packet``."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from penstock.errors import PayloadTooLarge

T = TypeVar("T")

_MOST_ROWS = 2_000
_MOST_BYTES = 8 * 1024 * 1024
_ROOM = 4 * 1024  # for the statement around the values
_ROW = 64
_VALUE = 24  # a number, quotes, commas


def chunks(items: Sequence[T], packet: int) -> Iterator[Sequence[T]]:
    """In order, each as large as one statement may be; an item is a row, or has one."""
    most = min(_MOST_BYTES, packet - _ROOM)
    chunk: list[T] = []
    total = 0
    for item in items:
        size = _size(item if isinstance(item, tuple) else item.row, packet)  # type: ignore[attr-defined]
        if chunk and (total + size > most or len(chunk) >= _MOST_ROWS):
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += size
    if chunk:
        yield chunk


def _size(row: tuple[Any, ...], packet: int) -> int:
    size = _ROW + _VALUE * len(row) + sum(map(_written, row))
    if size > packet - _ROOM:
        raise PayloadTooLarge(
            f"a message takes up to {size} bytes as a statement, twice its size, and the server "
            f"takes {packet}: raise max_allowed_packet there, or publish a reference to the data"
        )
    return size


def _written(value: object) -> int:
    """The bytes of a value as drivers write it: in hexadecimal, or with some bytes escaped."""
    return 2 * len(value) if isinstance(value, bytes) else 0
