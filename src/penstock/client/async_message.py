"""A claimed message and what its holder may do with it."""

from datetime import datetime, timedelta

from penstock.model import KEEP, Keep
from penstock.plan import Row

from .async_settling import KEPT, AsyncSettling
from .fields import MessageFields
from .settlement import Error, held


class AsyncMessage(MessageFields):
    """A message under our lease.

    Every method raises LeaseLost, and writes nothing, if the lease is no longer ours. With
    ``connection`` it works inside the caller's transaction.

    >>> for message in await queue.claim(limit=10):
    ...     await send_receipt(message.json())
    ...     await message.complete()
    """

    __slots__ = ("_settling",)

    def __init__(
        self, row: Row, claimed_at: datetime, until: datetime, settling: AsyncSettling
    ) -> None:
        self._row = row
        self.claimed_at = claimed_at
        self.until = until
        self._settling = settling

    async def complete(self, *, connection: object = None) -> None:
        """The work is done: the message ends.

        >>> await message.complete(connection=session)
        """
        held(await self._settling.complete([self], connection=connection))

    async def defer(
        self,
        delay: timedelta | None = None,
        *,
        at: datetime | None = None,
        state: object | Keep = KEEP,
        reason: str | None = None,
        error: Error = None,
        connection: object = None,
    ) -> bool:
        """Puts the message back for later, and says whether it is still alive.

        ``state`` is kept, replaced, or cleared by None. Without a reason or an error it is
        progress and the budget of attempts starts anew; with one it is a failed try, and the try
        that uses up ``max_attempts`` makes a dead letter: then the answer is False.

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
        """Gives the message up: it becomes a dead letter.

        >>> await message.fail("no such customer", error=error)
        """
        held(await self._settling.fail([self], reason, error=error, connection=connection))

    async def extend(
        self, length: timedelta | None = None, *, connection: object = None
    ) -> datetime:
        """Holds the lease for ``length`` from now on (by default the client's lease), and answers
        until when. Never shortens it.

        >>> await message.extend(timedelta(minutes=2))
        """
        answer = held(await self._settling.extend([self], length, connection=connection))
        assert answer.until is not None
        self.until = answer.until
        return answer.until

    async def once(
        self, connection: object, key: str | None = None, *, keep: timedelta = KEPT
    ) -> bool:
        """Notes in the caller's transaction that ``key``, by default this message, is done; True
        if it was not done before. See ``queue.once``.

        >>> async with await AsyncConnection.connect(url) as connection:
        ...     if await message.once(connection):
        ...         await charge(connection, order)
        """
        wanted = f"message:{self.id}" if key is None else key
        return await self._settling.once(connection, wanted, queue=self.queue, keep=keep)

    async def give_back(self, delay: timedelta | None = None, *, connection: object = None) -> None:
        """The work was not begun: the message waits again and the attempt is not counted.

        >>> await message.give_back()
        """
        held(await self._settling.give_back([self], delay, connection=connection))
