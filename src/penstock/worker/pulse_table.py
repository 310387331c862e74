"""The leases that a worker holds, in memory shared with its pulse process.

A slot is written by the worker (number, message, fence, when the lease ends, until when it may be
extended) and answered by the pulse (for which number, until when it is extended
by the shared clock; LOST if it is gone). Reads may be torn: an answer counts only for the number
that it names, a number is never reused, and a wrong pair of message and fence is refused by the
fence.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple

_SLOT = struct.Struct("=qqqddqd")
_WORKERS = struct.Struct("=qqqdd")
_ANSWER = struct.Struct("=qd")
_ANSWER_AT = _WORKERS.size
_HEADER = struct.Struct("=q")
_FIRST = 64  # the header's room

LOST = -1.0

SHORT_LEASE = 10.0
"""In seconds: loading a driver and connecting may take a third of what is shorter."""


class Lease(NamedTuple):
    slot: int
    number: int
    id: int
    fence: int
    until: float
    """When it ends, by the shared clock, as far as this table knows."""
    hold_until: float


class PulseTable:
    def __init__(self, descriptor: int, slots: int) -> None:
        self._memory = mmap.mmap(descriptor, size(slots))
        self._slots = slots

    def write(self, slot: int, number: int, id: int, fence: int, until: float, hold: float) -> None:
        _WORKERS.pack_into(self._memory, _place(slot), number, id, fence, until, hold)

    def clear(self, slot: int) -> None:
        _HEADER.pack_into(self._memory, _place(slot), 0)

    def set_used(self, slots: int) -> None:
        """How far the reader has to look."""
        _HEADER.pack_into(self._memory, 0, slots)

    def answer(self, slot: int) -> tuple[int, float]:
        """The number that the pulse answered for last, and until when."""
        return _ANSWER.unpack_from(self._memory, _place(slot) + _ANSWER_AT)

    def leases(self) -> Iterator[Lease]:
        """What is held now, read by the pulse."""
        (used,) = _HEADER.unpack_from(self._memory, 0)
        for slot in range(min(used, self._slots)):
            number, id, fence, until, hold, told, told_until = _SLOT.unpack_from(
                self._memory, _place(slot)
            )
            if number == 0:
                continue
            if told == number:
                if told_until == LOST:
                    continue
                until = max(until, told_until)
            yield Lease(slot, number, id, fence, until, hold)

    def tell(self, slot: int, number: int, until: float) -> None:
        _ANSWER.pack_into(self._memory, _place(slot) + _ANSWER_AT, number, until)

    def close(self) -> None:
        self._memory.close()


def size(slots: int) -> int:
    return _FIRST + slots * _SLOT.size


def _place(slot: int) -> int:
    return _FIRST + slot * _SLOT.size
