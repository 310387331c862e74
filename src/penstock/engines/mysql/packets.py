"""How much goes into one statement: the server takes no more than ``max_allowed_packet``."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from penstock.errors import PayloadTooLarge

T = TypeVar("T")

ANY_SERVER = 1024 * 1024
"""Bytes that every server in use takes."""
_MOST_ROWS = 2_000
_MOST_BYTES = 8 * 1024 * 1024
_ROOM = 4 * 1024  # for the statement around the values
_ROW = 64
_VALUE = 24  # a number, quotes, commas


def parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Of what is small row by row, whatever the batch: each fits, whichever server it is."""
    return chunks(rows, ANY_SERVER)


def check_fits(value: bytes | None, packet: int) -> None:
    """What a statement of its own writes."""
    _check("a state or payload", _VALUE + _written(value), packet)


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
    _check("a message", size, packet)
    return size


def _check(what: str, size: int, packet: int) -> None:
    if size > packet - _ROOM:
        raise PayloadTooLarge(
            f"{what} takes up to {size} bytes as a statement, twice its size, and the server "
            f"takes {packet}: raise max_allowed_packet there, or keep a reference to the data"
        )


def _written(value: object) -> int:
    """The bytes of a value as drivers write it: in hexadecimal, or with some bytes escaped."""
    return 2 * len(value) if isinstance(value, bytes) else 0
