"""One look a second tells all open pages that something changed; they fetch themselves again.

The look reads two counters. A reader of events would make every publish and every claim write a row
for it, which is too much for a page that somebody forgot in a tab.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from threading import Condition, Thread

from laneway.errors import LanewayError
from laneway.inspection import Totals

from .connections import Connections

_log = logging.getLogger("laneway.web")

EVERY = 1.0
_ALIVE = 15.0  # seconds after which a stream without changes says that it is alive


class HintSource:
    """A thread that runs while somebody listens. ``version`` rises with every change."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._changed = Condition()
        self._version = 0
        self._listeners = 0
        self._closed = False
        self._running = False

    def join(self) -> int:
        """Begins to listen; returns the version to wait for a change of."""
        with self._changed:
            self._listeners += 1
            if not self._running and not self._closed:
                self._running = True
                Thread(target=self._run, name="laneway-hints", daemon=True).start()
            return self._version

    def leave(self) -> None:
        with self._changed:
            self._listeners -= 1
            self._changed.notify_all()

    @property
    def version(self) -> int:
        return self._version

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        before: Totals | None = None
        while True:
            try:
                totals = self._connections.reading.totals()
            except LanewayError as error:
                _log.info("no hints for now: %s", error)
                totals = None
            with self._changed:
                if totals is not None and totals != before:
                    before = totals
                    self._version += 1
                    self._changed.notify_all()
                end = time.monotonic() + EVERY
                while not self._ended and time.monotonic() < end:
                    self._changed.wait(end - time.monotonic())
                if self._ended:
                    self._running = False
                    return

    @property
    def _ended(self) -> bool:
        return self._closed or self._listeners == 0


async def stream(hints: HintSource) -> AsyncIterator[bytes]:
    """A hint for each change, at most one a second; proxies want to hear something now and then."""
    seen = hints.join()
    try:
        yield b"retry: 3000\nevent: hint\ndata: 0\n\n"
        quiet = 0.0
        while not hints.closed:
            await asyncio.sleep(EVERY)
            quiet += EVERY
            if hints.version != seen:
                seen, quiet = hints.version, 0.0
                yield f"event: hint\ndata: {seen}\n\n".encode()
            elif quiet >= _ALIVE:
                quiet = 0.0
                yield b": alive\n\n"
    finally:
        hints.leave()
