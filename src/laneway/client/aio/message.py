"""A claimed message and what its holder may do with it."""

from datetime import datetime

from laneway.client.shared.message_fields import MessageFields
from laneway.client.shared.settle_items import Error, checked_progress, held
from laneway.durations import Duration
from laneway.model import KEEP, Keep
from laneway.plan import Row

from .flow import AsyncFlowMessage
from .settle import KEPT, AsyncSettleVerbs


class AsyncMessage(AsyncFlowMessage, MessageFields):
    """A message under our lease.

    Every method raises LeaseLost and writes nothing if the lease has ended. With
    ``connection`` it works inside the caller's transaction.

    >>> for message in await queue.claim(limit=10):
    ...     await send_receipt(message.json())
    ...     await message.complete()
    """

    __slots__ = ("_progress", "_settling")
    _progress: tuple[float | None, str | None]

    def __init__(
        self, row: Row, claimed_at: datetime, until: datetime, settling: AsyncSettleVerbs
    ) -> None:
        self._row = row
        self.claimed_at = claimed_at
        self.until = until
        self._settling = settling

    def progress(self, share: float | None, note: str | None = None) -> None:
        """Says how far the work is: a share from 0 to 1, a note of up to 500 characters, or both.

        Costs no statement of its own: it goes along when the lease is next extended, in a worker
        with the heartbeat, else with ``extend()``. The last one counts, and it is forgotten with
        the lease.

        >>> message.progress(0.4, "page 3 of 7")
        """
        self._progress = checked_progress(share, note)

    async def complete(self, *, result: object = None, connection: object = None) -> None:
        """Ends the message: the work is done. ``result`` is stored if the message was published
        with ``keep_result``.

        >>> await message.complete(connection=session)
        """
        held(await self._settling.complete([self], results=[result], connection=connection))

    async def defer(
        self,
        delay: Duration | None = None,
        *,
        at: datetime | None = None,
        state: object | Keep = KEEP,
        reason: str | None = None,
        error: Error = None,
        connection: object = None,
    ) -> bool:
        """Puts the message back for later; returns whether it still is in the queue.

        ``state`` is kept, replaced, or cleared by None. Without a reason or an error it counts as
        progress, and the attempts are counted from the start; with one it is a failed attempt, and
        the last one of ``max_attempts`` makes it a dead letter: then this returns False.

        >>> await message.defer(timedelta(minutes=5), state={"page": 7})
        """
        answer = held(
            await self._settling.defer(
                [self],
                delay,
                at=at,
                state=state,
                reason=reason,
                error=error,
                connection=connection,
            )
        )
        return answer.status == "deferred"

    async def fail(
        self,
        reason: str = "failed",
        *,
        error: Error = None,
        connection: object = None,
    ) -> None:
        """Makes the message a dead letter.

        >>> await message.fail("no such customer", error=error)
        """
        held(await self._settling.fail([self], reason, error=error, connection=connection))

    async def extend(
        self, length: Duration | None = None, *, connection: object = None
    ) -> datetime:
        """Extends the lease to ``length`` from now (by default the client's lease) and returns when
        it ends. Never shortens it.

        >>> await message.extend(timedelta(minutes=2))
        """
        answer = held(await self._settling.extend([self], length, connection=connection))
        assert answer.until is not None
        self.until = answer.until
        return answer.until

    async def once(
        self, connection: object, key: str | None = None, *, keep: Duration = KEPT
    ) -> bool:
        """Notes in the caller's transaction that ``key``, by default this message, is done; True
        if it was not done before. See ``queue.once``.

        >>> async with await AsyncConnection.connect(url) as connection:
        ...     if await message.once(connection):
        ...         await charge(connection, order)
        """
        wanted = f"message:{self.id}" if key is None else key
        return await self._settling.once(connection, wanted, queue=self.queue, keep=keep)

    async def give_back(self, delay: Duration | None = None, *, connection: object = None) -> None:
        """Gives the message back because the work was not begun; the attempt is not counted.

        >>> await message.give_back()
        """
        held(await self._settling.give_back([self], delay, connection=connection))
