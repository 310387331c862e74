"""Bulk operations that run: upkeep of any worker does them; where none runs, the dashboard does."""

import logging
from threading import Event, Lock, Thread

from laneway.client.sync.queue import Queue
from laneway.errors import ConnectionUnavailable, LanewayError

_log = logging.getLogger("laneway.web")

_RETRY = 5.0  # seconds, while the database is away
_MOST = 1000


class OperationHelper:
    """One thread at a time, until no operation is left; also those that a process before this one
    had begun, which was killed."""

    def __init__(self, queue: Queue, enabled: bool) -> None:
        self._queue = queue
        self._enabled = enabled
        self._lock = Lock()
        self._wanted = False
        self._working = False
        self._closed = Event()
        self._begun = False

    def begin(self) -> None:
        """Once in a process."""
        if not self._begun:
            self._begun = True
            self.wake()

    def wake(self) -> None:
        """There may be one now."""
        with self._lock:
            self._wanted = self._enabled
            if self._working or not self._wanted:
                return
            self._working = True
        Thread(target=self._work, name="laneway-operations", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _work(self) -> None:
        while self._goes_on():
            try:
                for operation in self._running():
                    self._queue.operations.run(operation)
            except ConnectionUnavailable as error:
                _log.warning("bulk operations wait for the database: %s", error)
                self._wanted = not self._closed.wait(_RETRY)
            except LanewayError as error:
                if not self._closed.is_set():
                    _log.warning("bulk operations wait for upkeep: %s", error)

    def _goes_on(self) -> bool:
        with self._lock:
            self._working = self._wanted and not self._closed.is_set()
            self._wanted = False
            return self._working

    def _running(self) -> list[int]:
        found = self._queue.operations.list(limit=_MOST)
        return sorted(one.id for one in found if one.state == "running")
