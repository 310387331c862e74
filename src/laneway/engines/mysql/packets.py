"""How much goes into one statement: the server accepts at most ``max_allowed_packet`` bytes."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from laneway.errors import PayloadTooLarge

T = TypeVar("T")

ANY_SERVER = 1024 * 1024
"""Bytes that every server in use accepts."""
_MAX_ROWS = 2_000
_MAX_BYTES = 8 * 1024 * 1024
_RESERVED = 4 * 1024  # for the statement around the values
_ROW = 64
_VALUE = 24  # a number, quotes, commas


def small_chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Chunks of small rows that every server accepts, without asking for its limit."""
    return chunks(rows, ANY_SERVER)


def check_fits(value: bytes | None, packet: int) -> None:
    """Raises PayloadTooLarge if a statement with just this value would be too long."""
    _check("a state or payload", _VALUE + _written_size(value), packet)


def chunks(items: Sequence[T], packet: int) -> Iterator[Sequence[T]]:
    """In order, each as large as one statement may be. An item is a row, or has a ``row``."""
    max_bytes = min(_MAX_BYTES, packet - _RESERVED)
    chunk: list[T] = []
    total = 0
    for item in items:
        size = _row_size(item if isinstance(item, tuple) else item.row, packet)  # type: ignore[attr-defined]
        if chunk and (total + size > max_bytes or len(chunk) >= _MAX_ROWS):
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += size
    if chunk:
        yield chunk


def _row_size(row: tuple[Any, ...], packet: int) -> int:
    size = _ROW + _VALUE * len(row) + sum(map(_written_size, row))
    _check("a message", size, packet)
    return size


def _check(what: str, size: int, packet: int) -> None:
    if size > packet - _RESERVED:
        raise PayloadTooLarge(
            f"{what} needs up to {size} bytes in a statement (bytes may be written as two), and "
            f"the server accepts {packet}: raise max_allowed_packet on the server, or store the "
            "data elsewhere and publish a reference to it"
        )


def _written_size(value: object) -> int:
    """At most: drivers write bytes in hexadecimal, or escape some of them."""
    return 2 * len(value) if isinstance(value, bytes) else 0
