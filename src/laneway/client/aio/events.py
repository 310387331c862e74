"""A reader of events."""

import logging
import time
from collections import deque
from datetime import timedelta
from types import TracebackType
from typing import Self

from laneway.client.shared.options import ClientAddress
from laneway.errors import ConnectionUnavailable, LanewayError
from laneway.event import MISSED, MOST_MAIL, Event, EventFilter, Heard

from .core import AsyncCore
from .idle_wait import AsyncIdleWait, pause

_log = logging.getLogger("laneway")

_LENGTH = timedelta(seconds=60)  # a reader that does not read for this long is dropped
# Seconds.
_RENEW_EVERY = 20.0
_PATIENCE = 0.2
_LIMIT = 100


class AsyncEvents:
    """Events as they are committed, from the moment it is opened; see ``queue.events()``.

    Opened by the first step of a loop or by ``with``, which also closes it, as closing the client
    does. It survives lost connections and restarts of the server, with a "missed" event after each.

    >>> async with queue.events(what=["completed", "dead"]) as events:
    ...     async for event in events:
    ...         print(event.what, event.message_id)
    """

    def __init__(
        self, core: AsyncCore, address: ClientAddress, wanted: EventFilter, idle: timedelta | None
    ) -> None:
        self._core = core
        self._idle_wait = AsyncIdleWait(core, address)
        self._wanted = wanted
        self._idle = None if idle is None else idle.total_seconds()
        self._ready: deque[Event] = deque()
        self._listener: int | None = None
        self._renew_at = 0.0
        self._behind = 0
        self._lost = False
        self._interrupted = False
        self._closed = False

    async def open(self) -> None:
        """Receives what is committed from now on."""
        self._listener = await self._core.run(self._core.engine.listen(self._wanted, _LENGTH))
        self._renew_at = time.monotonic() + _RENEW_EVERY
        self._behind = 0

    async def close(self) -> None:
        """Ends the loop and removes the mailbox, which otherwise expires after a minute."""
        self._closed = True
        listener, self._listener = self._listener, None
        try:
            await self._idle_wait.close()
            if listener is not None:
                await self._core.run(self._core.engine.unlisten(listener))
        except LanewayError as error:
            _log.info("could not remove a mailbox, upkeep will: %s", error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        begin = time.monotonic()
        while not self._closed:
            if self._ready:
                return self._ready.popleft()
            waited = time.monotonic() - begin
            try:
                await self._look()
                if self._ready:
                    await self._idle_wait.found()
                elif self._idle is not None and waited >= self._idle:
                    await self._idle_wait.close()
                    break
                else:
                    await self._idle_wait.until_next(f"mail {self._listener}", waited)
            except ConnectionUnavailable as error:
                await self._lose(error)
        raise StopAsyncIteration

    async def _look(self) -> None:
        """Fetches new events."""
        if self._listener is None:
            await self.open()
        # If this is interrupted or cancelled, the events being fetched may be gone.
        lost, self._lost = self._lost, True
        heard, missed = await self._hear()
        if not heard.alive:
            await self.open()
        self._lost = self._interrupted = False
        # In the order in which it happened: lost with an earlier fetch, found, no longer written.
        self._ready += [MISSED] if lost else []
        self._ready += heard.events
        self._ready += [MISSED] if missed else []

    async def _lose(self, error: ConnectionUnavailable) -> None:
        if not self._interrupted:
            _log.warning("events are interrupted: %s", error)
        self._interrupted = True
        await pause(_PATIENCE)

    async def _hear(self) -> tuple[Heard, bool]:
        assert self._listener is not None
        renewing = time.monotonic() >= self._renew_at or self._behind >= MOST_MAIL // 2
        length = _LENGTH if renewing else None
        heard = await self._core.run(self._core.engine.hear(self._listener, _LIMIT, length))
        if renewing:
            self._renew_at = time.monotonic() + _RENEW_EVERY
        missed = not heard.alive or (renewing and heard.behind >= MOST_MAIL)
        self._behind = 0 if renewing else heard.behind
        return heard, missed

    async def __aenter__(self) -> Self:
        if self._listener is None:
            await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
