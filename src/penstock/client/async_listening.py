"""events and wait: what happens to messages, as it happens."""

import math
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from penstock.errors import NotEnded
from penstock.event import WHAT, Ending, EventFilter, What
from penstock.names import check_kind, check_name

from .async_core import AsyncCore
from .async_events import AsyncEvents
from .checks import check_choice, check_ids, check_length, check_list, check_queues
from .options import Address
from .rest_async import pause

_FIRST_PAUSE = 0.01  # seconds
_MOST_PAUSE = 0.5


class AsyncListening:
    """Part of the client."""

    _address: Address

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def events(
        self,
        *,
        what: Iterable[What] | None = None,
        queues: Iterable[str] | None = None,
        channels: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        idle: timedelta | None = None,
    ) -> AsyncEvents:
        """What happens to messages of all queues, or of those that the filters name, as it is
        committed. With ``idle`` the loop ends when nothing has come for so long.

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
            idle = check_length("idle", idle)
        return AsyncEvents(self._core, self._address, wanted, idle)

    async def wait(
        self,
        message_id: int,
        timeout: timedelta | None = None,  # noqa: ASYNC109, the database is asked, not the loop
    ) -> Ending:
        """Waits until a message has ended, and says how; at once if it has already.

        Never misses it: what is asked for is where the message is, not what was heard. A dead
        letter counts as ended. Raises NotEnded when ``timeout`` has passed. Call it after the
        publish was committed.

        >>> ending = await queue.wait(published.id, timeout=timedelta(seconds=30))
        """
        ids = check_ids([message_id])
        patience = math.inf
        if timeout is not None:
            patience = check_length("timeout", timeout).total_seconds()
        begin = time.monotonic()
        while True:
            (ending,) = await self._core.run_items(self._core.engine.endings, ids)
            if ending is not None:
                return ending
            waited = time.monotonic() - begin
            if waited >= patience:
                raise NotEnded(
                    f"message {message_id} has not ended after {timeout}: wait again, "
                    "or look at it with queue.message()"
                )
            # A tenth of the time so far: nobody waits much longer than was needed.
            await pause(min(max(waited / 10, _FIRST_PAUSE), _MOST_PAUSE, patience - waited))


def _names(what: str, values: Iterable[str], check: Callable[[object], str]) -> list[str]:
    return [check(value) for value in check_list(what, values)]


def _names_of_events(what: Iterable[str]) -> list[str]:
    return [check_choice("an event", name, WHAT) for name in check_list("what", what)]
