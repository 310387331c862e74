"""events and wait: what happens to messages, as it happens."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from laneway.client.shared.checks import check_choice, check_ids, check_list, check_queues
from laneway.client.shared.options import ClientAddress
from laneway.durations import Duration, check_duration
from laneway.errors import ConnectionUnavailable, InvalidOption, LanewayError, NotEnded
from laneway.event import (
    MISSED,
    MOST_MAIL,
    WHAT,
    Event,
    EventFilter,
    Heard,
    MessageEnd,
    StoredResult,
    What,
)
from laneway.model import Published
from laneway.names import check_kind, check_name
from laneway.payload import read_result
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase
from .waits import AsyncEndBell, AsyncIdleWait, pause

# A reader of events.

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
        self,
        database: AsyncDatabase,
        address: ClientAddress,
        wanted: EventFilter,
        idle: timedelta | None,
    ) -> None:
        self._database = database
        self._idle_wait = AsyncIdleWait(database, address)
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
        self._listener = await self._database.run(
            self._database.engine.events.listen(self._wanted, _LENGTH)
        )
        self._renew_at = time.monotonic() + _RENEW_EVERY
        self._behind = 0

    async def close(self) -> None:
        """Ends the loop and removes the mailbox, which otherwise expires after a minute."""
        self._closed = True
        listener, self._listener = self._listener, None
        try:
            await self._idle_wait.close()
            if listener is not None:
                await self._database.run(self._database.engine.events.unlisten(listener))
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
        heard = await self._database.run(
            self._database.engine.events.hear(self._listener, _LIMIT, length)
        )
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


T = TypeVar("T")

_FIRST_PAUSE = 0.01  # seconds
_MOST_PAUSE = 0.5
_RING_AFTER = 0.2  # shorter waits are not worth a connection that listens


@explains_mistakes
class AsyncListenVerbs:
    """A part of the client: events and wait."""

    _address: ClientAddress

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    def events(
        self,
        *,
        what: Iterable[What] | None = None,
        queues: Iterable[str] | None = None,
        channels: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        idle: Duration | None = None,
    ) -> AsyncEvents:
        """What happens to messages of all queues, or of those that the filters name, as it is
        committed. With ``idle`` the loop ends when nothing has come for that long.

        An event "missed" says that something may have been missed: after a lost connection, a
        restart of the server, or a minute without reading. Each reader sees all events.

        >>> async for event in queue.events(what=["dead"], queues=["emails"]): ...
        """
        wanted = EventFilter(
            None if what is None else _names_of_events(what),
            None if queues is None else check_queues(queues),
            None
            if channels is None
            else _names("channels", channels, partial(check_name, "channel")),
            None if kinds is None else _names("kinds", kinds, check_kind),
        )
        if idle is not None:
            idle = check_duration("idle", idle)
        return AsyncEvents(self._database, self._address, wanted, idle)

    async def wait(
        self,
        message_id: int | Published,
        timeout: Duration | None = None,
    ) -> MessageEnd:
        """Waits until a message has ended, and says how; at once if it has already.

        Never misses it: it asks where the message is instead of waiting for an event. A dead
        letter counts as ended. Raises NotEnded when ``timeout`` has passed. Call it after the
        publish was committed.

        >>> ending = await queue.wait(published.id, timeout=30)
        """
        ids = _one_id(message_id)
        patience = math.inf
        if timeout is not None:
            patience = check_duration("timeout", timeout).total_seconds()
        begin = time.monotonic()
        bell = AsyncEndBell.of(self._database, self._address)
        while True:
            rung = bell.next_ring()
            (ending,) = await self._database.run_items(self._database.engine.events.endings, ids)
            if ending is not None:
                return ending
            waited = time.monotonic() - begin
            if waited >= patience:
                raise NotEnded(
                    f"message {ids[0]} has not ended after {timeout}: wait again, "
                    "or look at it with queue.message()"
                )
            # A tenth of the time so far: nobody waits more than 10 % longer than necessary. For a
            # message whose result is kept the bell rings, where the database has one.
            most = min(max(waited / 10, _FIRST_PAUSE), _MOST_PAUSE, patience - waited)
            await (pause(most) if waited < _RING_AFTER else bell.wait(rung, most))

    @overload
    async def result(
        self,
        message_id: int | Published,
        wanted: type[T],
        *,
        timeout: Duration | None = None,
    ) -> T: ...
    @overload
    async def result(
        self,
        message_id: int | Published,
        wanted: Any = Any,
        *,
        timeout: Duration | None = None,
    ) -> Any: ...
    async def result(
        self,
        message_id: int | Published,
        wanted: Any = Any,
        *,
        timeout: Duration | None = None,
    ) -> Any:
        """Waits until a message has ended, as ``wait`` does, and returns what its handler returned:
        as ``wanted``, which is what a payload can be decoded to, or as it is.

        Raises NotEnded when ``timeout`` has passed, and a NoResult if there is none to give:
        ResultMissing if it was not kept or no longer is, MessageDead, MessageCancelled,
        MessageLapsed or MessageUnknown.

        >>> receipt = await queue.result(published.id, Receipt, timeout=30)
        """
        ending = await self.wait(message_id, timeout)
        stored: StoredResult | None = None
        if ending.outcome == "completed" and ending.kept_until is not None:
            ids = [ending.message_id]
            (stored,) = await self._database.run_items(self._database.engine.events.results, ids)
        return read_result(ending, stored, wanted)


def _one_id(message: int | Published) -> list[int]:
    if isinstance(message, Published):
        if message.id is None:
            raise InvalidOption("the message was refused and never published: nothing will end")
        return [message.id]
    return check_ids([message])


def _names(what: str, values: Iterable[str], check: Callable[[object], str]) -> list[str]:
    return [check(value) for value in check_list(what, values)]


def _names_of_events(what: Iterable[str]) -> list[str]:
    return [check_choice("an event", name, WHAT) for name in check_list("what", what)]
