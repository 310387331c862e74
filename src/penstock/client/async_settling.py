"""The batch forms of what a lease holder may do. They answer per message instead of raising."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from penstock.errors import InvalidOption
from penstock.model import KEEP, Cancelled, Keep, Settled
from penstock.names import check_name

from .async_core import AsyncCore
from .checks import check_ids, check_length
from .fields import MessageFields
from .settlement import Error, deferrals, extensions, failures, leases, returns

KEPT = timedelta(days=30)


class AsyncSettling:
    """Part of the client."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    async def complete(
        self, messages: Iterable[MessageFields], *, connection: object = None
    ) -> list[Settled]:
        """Completes many messages in one round trip.

        >>> lost = [s for s in await queue.complete(messages) if s.lost]
        """
        engine = self._core.engine
        return await self._core.run_items(engine.complete, leases(messages), connection)

    async def defer(
        self,
        messages: Iterable[MessageFields],
        delay: timedelta | None = None,
        *,
        at: datetime | None = None,
        state: object | Keep = KEEP,
        reason: str | None = None,
        error: Error = None,
        connection: object = None,
    ) -> list[Settled]:
        """Defers many messages in one round trip, all in the same way.

        >>> await queue.defer(messages, timedelta(minutes=5))
        """
        most = self._core.options.max_payload
        items = deferrals(messages, delay, at, state, reason, error, most)
        return await self._core.run_items(self._core.engine.defer, items, connection)

    async def fail(
        self,
        messages: Iterable[MessageFields],
        reason: str = "failed",
        *,
        error: Error = None,
        connection: object = None,
    ) -> list[Settled]:
        """Gives many messages up in one round trip, all with the same reason.

        >>> await queue.fail(messages, "the account was closed")
        """
        items = failures(messages, reason, error)
        return await self._core.run_items(self._core.engine.fail, items, connection)

    async def extend(
        self,
        messages: Iterable[MessageFields],
        length: timedelta | None = None,
        *,
        connection: object = None,
    ) -> list[Settled]:
        """Extends many leases in one round trip, by default to the client's lease from now on.

        >>> await queue.extend(messages)
        """
        items = extensions(messages, self._core.options.lease if length is None else length)
        return await self._core.run_items(self._core.engine.extend, items, connection)

    async def give_back(
        self,
        messages: Iterable[MessageFields],
        delay: timedelta | None = None,
        *,
        connection: object = None,
    ) -> list[Settled]:
        """Gives many messages back in one round trip.

        >>> await queue.give_back(messages)
        """
        items = returns(messages, delay)
        return await self._core.run_items(self._core.engine.give_back, items, connection)

    async def once(
        self,
        connection: object,
        key: str,
        *,
        queue: str | None = None,
        keep: timedelta = KEPT,
    ) -> bool:
        """Notes in the caller's transaction that ``key`` is done; True if it was not done before.

        The note and the caller's effects commit together, so what is done under the key happens
        once, however often it is tried. It is remembered for ``keep``, which must be longer than
        the message can come back.

        >>> if await queue.once(connection, f"invoice:{order.id}"): ...
        """
        if connection is None:
            raise InvalidOption(
                "once() needs your connection: the note is part of your transaction"
            )
        target = self._core.options.queue if queue is None else check_name("queue", queue)
        plan = self._core.engine.once(target, check_name("key", key), check_length("keep", keep))
        return await self._core.run(plan, connection)

    async def cancel(self, ids: Iterable[int]) -> list[Cancelled]:
        """Ends waiting messages without an attempt; a leased one stays with its holder.

        >>> await queue.cancel([published.id])
        """
        wanted = check_ids(ids)
        if not wanted:
            return []
        return await self._core.run(self._core.engine.cancel(wanted))
