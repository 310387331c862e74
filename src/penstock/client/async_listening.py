"""events and wait: what happens to messages, as it happens."""

import math
import time
from collections.abc import Iterable
from datetime import timedelta

from penstock.errors import InvalidOption, NotEnded
from penstock.event import WHAT, Ending, EventFilter, What
from penstock.names import check_kind, check_name

from .async_core import AsyncCore
from .async_events import AsyncEvents
from .checks import check_ids, check_length, check_queues
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
            None if channels is None else [check_name("channel", name) for name in channels],
            None if kinds is None else [check_kind(name) for name in kinds],
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


def _names_of_events(what: Iterable[str]) -> list[str]:
    if isinstance(what, str):
        raise InvalidOption(f"what must be a list of events, not the text {what!r}")
    names = list(what)
    for name in names:
        if name not in WHAT:
            raise InvalidOption(f"there is no event {name!r}: use some of {', '.join(WHAT)}")
    return names
