"""Group commit for threads: while one flush is under way, later calls wait and go together.

The first caller leads: it flushes for all who wait, then hands over. There is no timer and no
thread of our own: a lone call goes at once.
"""

import logging
from collections.abc import Callable
from threading import Condition, Lock
from typing import Generic, TypeVar

from penstock.errors import ConnectionUnavailable, PenstockError

_log = logging.getLogger("penstock")

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class _Entry(Generic[Part, Answer]):
    """One caller's part and, once ``done``, its answer or error."""

    __slots__ = ("abandoned", "answer", "condition", "done", "error", "leads", "part")

    answer: Answer

    def __init__(self, part: Part, condition: Condition) -> None:
        self.part = part
        self.condition = condition
        self.error: BaseException | None = None
        self.done = self.leads = self.abandoned = False


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
    ) -> None:
        self._flush = flush
        self._size = size
        self._most = most
        self._undo = undo
        self._lock = Lock()
        self._idle = Condition(self._lock)
        self._waiting: list[_Entry[Part, Answer]] = []
        self._busy = False

    def call(self, part: Part) -> Answer:
        # Each waits on a condition of its own, all on one lock: a flush wakes whom it answered.
        entry: _Entry[Part, Answer] = _Entry(part, Condition(self._lock))
        with self._lock:
            self._waiting.append(entry)
            entry.leads, self._busy = not self._busy, True
            try:
                while not (entry.done or entry.leads):
                    entry.condition.wait()
            except BaseException:
                self._abandon(entry)
                raise
            batch = self._next_batch() if entry.leads else []
        if batch:
            self._lead(batch)
        if entry.error is not None:
            raise entry.error
        return entry.answer

    def drain(self) -> None:
        """Waits for the calls that are under way."""
        with self._lock:
            while self._busy:
                self._idle.wait()

    def landed(self) -> None:
        """There is nothing to wait for; see ``before``."""

    def _lead(self, batch: list[_Entry[Part, Answer]]) -> None:
        try:
            self._settle(batch)
        finally:
            with self._lock:
                for entry in batch:
                    entry.done = True
                    entry.condition.notify()
                self._hand_over()
        for entry in batch:
            if entry.abandoned:
                self._take_back(entry)

    def _hand_over(self) -> None:
        self._busy = bool(self._waiting)
        if self._busy:
            self._waiting[0].leads = True
            self._waiting[0].condition.notify()
        else:
            self._idle.notify_all()

    def _abandon(self, entry: _Entry[Part, Answer]) -> None:
        entry.abandoned = True
        if entry in self._waiting:
            self._waiting.remove(entry)
            if entry.leads:
                self._hand_over()
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
