"""Group commit for threads: while one flush is under way, later calls wait and go together.

The first caller leads: it flushes for all who wait, then hands over. There is no thread of our own,
and a lone call goes at once. A flush that takes long waits for somebody's lock, perhaps for that of
a caller who waits here: then one of those behind it leads, on another connection.
"""

import logging
from collections.abc import Callable
from threading import Condition, Lock
from time import monotonic
from typing import Generic, Self, TypeVar

from laneway.errors import ConnectionUnavailable, LanewayError

_log = logging.getLogger("laneway")

PATIENCE = 0.1  # seconds; a flush that takes longer waits for a lock

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class _Entry(Generic[Part, Answer]):
    """One caller's part and, once ``done``, its answer or error; and what its caller flushes."""

    __slots__ = ("abandoned", "answer", "batch", "condition", "done", "error", "part")

    answer: Answer

    def __init__(self, part: Part, condition: Condition) -> None:
        self.part = part
        self.condition = condition
        self.error: BaseException | None = None
        self.batch: list[Self] = []
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
        self._flying: set[_Entry[Part, Answer]] = set()
        self._leader: _Entry[Part, Answer] | None = None
        self._appointed = 0.0

    def call(self, part: Part) -> Answer:
        # Each waits on a condition of its own, all on one lock: a flush wakes whom it answered.
        entry: _Entry[Part, Answer] = _Entry(part, Condition(self._lock))
        try:
            self._join(entry)
            while not self._is_done(entry):
                self._lead(entry)
        except BaseException:
            # An interruption may come anywhere: whoever depends on us must not wait for ever.
            self._abandon(entry)
            raise
        if entry.error is not None:
            raise entry.error
        return entry.answer

    def drain(self) -> None:
        """Waits for the calls that are under way."""
        with self._lock:
            while self._flying or self._waiting:
                self._idle.wait()

    def landed(self) -> None:
        """There is nothing to wait for; see ``before``."""

    def _join(self, entry: _Entry[Part, Answer]) -> None:
        with self._lock:
            self._waiting.append(entry)
            if self._leader is None:
                self._appoint(entry)

    def _is_done(self, entry: _Entry[Part, Answer]) -> bool:
        """Waits until it is, or until its caller is to lead with the batch that it has then."""
        with self._lock:
            while not entry.done and self._leader is not entry:
                self._wait(entry)
            if not entry.done:
                self._take_batch(entry)
            return entry.done

    def _wait(self, entry: _Entry[Part, Answer]) -> None:
        """For the leader, and no longer than it may take if we are not in its batch."""
        left = self._appointed + self._patience - monotonic()
        if entry not in self._waiting:
            entry.condition.wait()
        elif left > 0:
            entry.condition.wait(left)
        else:
            self._appoint(entry)

    def _appoint(self, leader: _Entry[Part, Answer] | None) -> None:
        self._leader = leader
        self._appointed = monotonic()
        if leader is not None:
            leader.condition.notify()

    def _lead(self, leader: _Entry[Part, Answer]) -> None:
        self._settle(leader.batch)
        with self._lock:
            landed = self._land(leader)
        for entry in landed:
            if entry.abandoned:
                self._take_back(entry)

    def _land(self, leader: _Entry[Part, Answer]) -> list[_Entry[Part, Answer]]:
        batch, leader.batch = leader.batch, []
        for entry in batch:
            entry.done = True
            entry.condition.notify()
        self._flying.discard(leader)
        if self._leader is leader:
            self._appoint(self._waiting[0] if self._waiting else None)
        if not (self._flying or self._waiting):
            self._idle.notify_all()
        return batch

    def _abandon(self, entry: _Entry[Part, Answer]) -> None:
        with self._lock:
            entry.abandoned = True
            if entry in self._waiting:
                self._waiting.remove(entry)
            for follower in entry.batch:
                if follower.error is None and not hasattr(follower, "answer"):
                    follower.error = _led_astray("it was interrupted")
            landed = self._land(entry)
        for one in landed if entry in landed else [entry, *landed]:
            if one.done and one.abandoned:
                self._take_back(one)

    def _take_back(self, entry: _Entry[Part, Answer]) -> None:
        if self._undo is None or entry.error is not None:
            return
        try:
            self._undo(entry.answer)
        except LanewayError as error:
            # Nobody is left to be told; what was claimed comes back when its lease runs out.
            _log.warning("an answer that nobody waits for could not be undone: %s", error)

    def _take_batch(self, leader: _Entry[Part, Answer]) -> None:
        self._flying.add(leader)
        total = self._size(self._waiting[0].part)
        count = 1
        while count < len(self._waiting):
            total += self._size(self._waiting[count].part)
            if total > self._most:
                break
            count += 1
        leader.batch = self._waiting[:count]
        del self._waiting[:count]

    def _settle(self, batch: list[_Entry[Part, Answer]]) -> None:
        try:
            answers = self._flush([entry.part for entry in batch])
        except (LanewayError, ValueError, TypeError) as error:
            self._settle_failed(batch, error)
        except BaseException as error:
            for entry in batch:
                entry.error = _led_astray(repr(error))
            raise
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


def _led_astray(why: str) -> ConnectionUnavailable:
    return ConnectionUnavailable(f"the call that led this one ended: {why}")
