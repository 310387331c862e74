"""events and wait: what happens to messages, as it happens."""

import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, overload

from laneway.client.shared.checks import (
    check_choice,
    check_ids,
    check_list,
    check_queues,
)
from laneway.client.shared.options import ClientAddress
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, NotEnded
from laneway.event import WHAT, EventFilter, MessageEnd, StoredResult, What
from laneway.kept_results import read_result
from laneway.model import Published
from laneway.names import check_kind, check_name

from .core import AsyncCore
from .end_bell import AsyncEndBell
from .events import AsyncEvents
from .idle_wait import pause

T = TypeVar("T")

_FIRST_PAUSE = 0.01  # seconds
_MOST_PAUSE = 0.5
_RING_AFTER = 0.2  # shorter waits are not worth a connection that listens


class AsyncListenVerbs:
    """A part of the client: events and wait."""

    _address: ClientAddress

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

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
        return AsyncEvents(self._core, self._address, wanted, idle)

    async def wait(
        self,
        message_id: int | Published,
        timeout: Duration | None = None,  # noqa: ASYNC109, the database is asked, not the loop
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
        bell = AsyncEndBell.of(self._core, self._address)
        while True:
            rung = bell.next_ring()
            (ending,) = await self._core.run_items(self._core.engine.endings, ids)
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
        timeout: Duration | None = None,  # noqa: ASYNC109
    ) -> T: ...
    @overload
    async def result(
        self,
        message_id: int | Published,
        wanted: Any = Any,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109
    ) -> Any: ...
    async def result(
        self,
        message_id: int | Published,
        wanted: Any = Any,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109, as wait
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
            (stored,) = await self._core.run_items(self._core.engine.results, ids)
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
