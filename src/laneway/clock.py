"""The clock of the engines: the database's own, one that a client was given, or one that a test
moves for all clients of this process (``laneway.testing.clock``)."""

from collections.abc import Callable
from datetime import datetime

Clock = Callable[[], datetime]

on_move: set[Callable[[], None]] = set()
"""Called when the clock of this process was moved, in the thread that moved it: for those who
wait."""


class ProcessClock:
    """That of all who have none of their own; None: the database's."""

    current: Clock | None = None
    moves = 0
    """How often it was moved: what is done from time to time is due again."""

    @classmethod
    def set(cls, clock: Clock | None) -> None:
        cls.current = clock
        cls.moves += 1
        for tell in tuple(on_move):
            tell()


class Clocked:
    """What has a clock: ``_clock`` is None where the database's own counts."""

    _own_clock: Clock | None = None

    @property
    def _clock(self) -> Clock | None:
        return self._own_clock or ProcessClock.current
