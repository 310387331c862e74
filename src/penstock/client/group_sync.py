"""Group commit for threads: while one flush is under way, later calls wait and go together.

The first caller leads: it flushes for all who wait, then hands over. There is no thread of our own,
and a lone call goes at once. A flush that takes long waits for somebody's lock, perhaps for that of
a caller who waits here: then one of those behind it leads, on another connection.
"""

import logging
from collections.abc import Callable
from threading import Condition, Lock
from time import monotonic
from typing import Generic, TypeVar

from penstock.errors import ConnectionUnavailable, PenstockError

_log = logging.getLogger("penstock")

PATIENCE = 0.1  # seconds; a flush that takes longer waits for a lock

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class _Entry(Generic[Part, Answer]):
    """One caller's part and, once ``done``, its answer or error."""

    __slots__ = ("abandoned", "answer", "condition", "done", "error", "part")

    answer: Answer

    def __init__(self, part: Part, condition: Condition) -> None:
        self.part = part
        self.condition = condition
        self.error: BaseException | None = None
        self.done = self.abandoned = False


class Group(Generic[Part, Answer]):
    """Merges calls into flushes of at most ``most``, by ``size`` of their parts.

    ``undo`` gets an answer whose caller was interrupted while it waited. ``before`` is for tasks
    and not called here: threads wake in no order, so those whom another group's flush answered
    would come too late to join.
    """

    def __init__(
        self,
        flush: Callable[[list[Part]], list[Answer]],
        size: Callable[[Part], int],
        most: int,
        undo: Callable[[Answer], None] | None = None,
        before: Callable[[], None] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._flush = flush
        self._size = size
        self._most = most
        self._undo = undo
        self._lock = Lock()
        self._idle = Condition(self._lock)
        self._patience = patience
        self._waiting: list[_Entry[Part, Answer]] = []
        self._leader: _Entry[Part, Answer] | None = None
        self._flights = 0
        self._appointed = 0.0

    def call(self, part: Part) -> Answer:
        # Each waits on a condition of its own, all on one lock: a flush wakes whom it answered.
        entry: _Entry[Part, Answer] = _Entry(part, Condition(self._lock))
        with self._lock:
            self._waiting.append(entry)
            if self._leader is None:
                self._appoint_next()
        if batch := self._wait(entry):
            self._lead(batch)
        if entry.error is not None:
            raise entry.error
        return entry.answer

    def drain(self) -> None:
        """Waits for the calls that are under way."""
        with self._lock:
            while self._flights or self._waiting:
                self._idle.wait()

    def landed(self) -> None:
        """There is nothing to wait for; see ``before``."""

    def _wait(self, entry: _Entry[Part, Answer]) -> list[_Entry[Part, Answer]]:
        """Until the entry is done, or its caller is to lead with the batch that this answers."""
        with self._lock:
            try:
                while not entry.done and self._leader is not entry:
                    self._wait_for_the_leader(entry)
            except BaseException:
                self._abandon(entry)
                raise
            if entry.done:
                return []
            self._flights += 1
            return self._next_batch()

    def _wait_for_the_leader(self, entry: _Entry[Part, Answer]) -> None:
        if entry not in self._waiting:
            entry.condition.wait()
            return
        left = self._appointed + self._patience - monotonic()
        if left > 0:
            entry.condition.wait(left)
        else:
            self._appoint_next()

    def _appoint_next(self) -> None:
        self._leader = self._waiting[0] if self._waiting else None
        self._appointed = monotonic()
        if self._leader is not None:
            self._leader.condition.notify()
        elif not self._flights:
            self._idle.notify_all()

    def _lead(self, batch: list[_Entry[Part, Answer]]) -> None:
        try:
            self._settle(batch)
        finally:
            with self._lock:
                self._flights -= 1
                for entry in batch:
                    entry.done = True
                    entry.condition.notify()
                if self._leader is batch[0] or not self._waiting:
                    self._appoint_next()
        for entry in batch:
            if entry.abandoned:
                self._take_back(entry)

    def _abandon(self, entry: _Entry[Part, Answer]) -> None:
        entry.abandoned = True
        if entry in self._waiting:
            self._waiting.remove(entry)
            if self._leader is entry:
                self._appoint_next()
        elif entry.done:
            self._take_back(entry)

    def _take_back(self, entry: _Entry[Part, Answer]) -> None:
        if self._undo is None or entry.error is not None:
            return
        try:
            self._undo(entry.answer)
        except PenstockError as error:
            # Nobody is left to be told; what was claimed comes back when its lease runs out.
            _log.warning("an answer that nobody waits for could not be undone: %s", error)

    def _next_batch(self) -> list[_Entry[Part, Answer]]:
        batch: list[_Entry[Part, Answer]] = []
        total = 0
        while self._waiting:
            total += self._size(self._waiting[0].part)
            if batch and total > self._most:
                break
            batch.append(self._waiting.pop(0))
        return batch

    def _settle(self, batch: list[_Entry[Part, Answer]]) -> None:
        try:
            answers = self._flush([entry.part for entry in batch])
        except (PenstockError, ValueError, TypeError) as error:
            self._settle_failed(batch, error)
        except BaseException as error:
            for entry in batch:
                entry.error = ConnectionUnavailable(f"the call that led this one ended: {error!r}")
            batch[0].error = error
        else:
            for entry, answer in zip(batch, answers, strict=True):
                entry.answer = answer

    def _settle_failed(self, batch: list[_Entry[Part, Answer]], error: Exception) -> None:
        """One part may be at fault: each goes by itself, unless the connection is gone."""
        if len(batch) == 1 or isinstance(error, ConnectionUnavailable):
            for entry in batch:
                entry.error = error
            return
        for entry in batch:
            self._settle([entry])
