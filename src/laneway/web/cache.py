"""One answer for all viewers: kept for two seconds, asked for once, and shown when asking fails."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Condition
from typing import Any, Generic, TypeVar

from laneway.errors import ConnectionUnavailable, DatabaseFailed, LanewayError

T = TypeVar("T")

KEEP_SECONDS = 2.0
_ENTRIES = 500


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """What was read, ``age`` seconds ago; ``error`` says why there is nothing newer."""

    value: T
    age: float = 0.0
    error: str | None = None


class _Entry:
    """One question. ``loading`` while somebody asks the database."""

    def __init__(self) -> None:
        self.loading = False
        self.has_value = False
        self.value: Any = None
        self.read_at = 0.0
        self.asked_at = float("-inf")
        self.error: LanewayError | None = None


class SharedCache:
    """Threads that ask the same at the same time share one call. Least recently used ones go."""

    def __init__(self, keep: float = KEEP_SECONDS) -> None:
        self._keep = keep
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._changed = Condition()
        self._generation = 0
        self.calls = 0
        """How often the database was asked."""

    def get(self, key: Hashable, load: Callable[[], T]) -> Seen[T]:
        """Raises what ``load`` raised if there is no earlier answer."""
        with self._changed:
            entry = self._entry(key)
            while entry.loading:
                self._changed.wait()
            if time.monotonic() - entry.asked_at < self._keep:
                return self._answer(entry)
            entry.loading = True
            self.calls += 1
        self._load(entry, load)
        with self._changed:
            return self._answer(entry)

    def clear(self) -> None:
        """After an action: its effect must be seen at once."""
        with self._changed:
            self._generation += 1
            for entry in self._entries.values():
                entry.asked_at = float("-inf")

    def _entry(self, key: Hashable) -> _Entry:
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        while len(self._entries) > _ENTRIES:
            self._entries.popitem(last=False)
        return entry

    def _load(self, entry: _Entry, load: Callable[[], Any]) -> None:
        begun, generation = time.monotonic(), self._generation
        try:
            value = load()
        except BaseException as error:
            with self._changed:
                entry.loading = False
                # A server that is away is not asked again by every viewer.
                kept = isinstance(error, ConnectionUnavailable | DatabaseFailed)
                entry.asked_at = time.monotonic() if kept else float("-inf")
                entry.error = error if kept and isinstance(error, LanewayError) else None
                self._changed.notify_all()
            if not kept:
                raise
            return
        with self._changed:
            entry.loading, entry.has_value, entry.value, entry.error = False, True, value, None
            # What was read while somebody acted may be from before that.
            current = generation == self._generation
            entry.read_at, entry.asked_at = begun, time.monotonic() if current else float("-inf")
            self._changed.notify_all()

    @staticmethod
    def _answer(entry: _Entry) -> Seen[Any]:
        if not entry.has_value:
            assert entry.error is not None
            raise entry.error
        error = None if entry.error is None else str(entry.error)
        return Seen(entry.value, max(0.0, time.monotonic() - entry.read_at), error)
