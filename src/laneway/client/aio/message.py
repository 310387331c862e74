"""A claimed message and what its holder may do with it; the settling calls for many messages."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from laneway.client.shared.checks import check_ids
from laneway.client.shared.error_text import traceback_text
from laneway.client.shared.message_fields import MessageFields, leases_of
from laneway.client.shared.operate import check_flag
from laneway.client.shared.settle_items import (
    Error,
    checked_progress,
    complete_after_waits,
    complete_with_results,
    deferrals,
    extensions,
    failed_as,
    failures,
    held,
    kept_notes,
    limit_notes,
    listed_messages,
    notes_of,
    results_to_keep,
    returns,
    waits,
)
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption
from laneway.limits import AttemptEnd
from laneway.model import KEEP, Cancelled, Keep, Settled
from laneway.names import check_name
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Row
from laneway.shared_limits import LimitNote
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase
from .flow import AsyncFlowMessage, AsyncFlowMessageVerbs

Item = TypeVar("Item")

# The settling calls for many messages: they return a status per message instead of raising.

KEPT = timedelta(days=30)


@explains_mistakes
class AsyncSettleVerbs(AsyncFlowMessageVerbs):
    """A part of the client: the calls that end or extend leases, for many messages at once."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    def _traceback(self, error: Error) -> str | None:
        """What is kept with a dead letter."""
        return traceback_text(error)

    async def complete(
        self,
        messages: Iterable[MessageFields],
        *,
        results: Sequence[object] | None = None,
        connection: object = None,
    ) -> list[Settled]:
        """Completes many messages in one round trip. ``results``, one each, are stored with those
        that were published with ``keep_result``.

        >>> lost = [s for s in await queue.complete(messages) if s.lost]
        """
        engine = self._database.engine
        messages = list(listed_messages(messages))
        rows, waited = leases_of(messages), waits(messages)
        kept = results_to_keep(messages, results, self._database.options.max_payload)
        notes = limit_notes(engine, messages, AttemptEnd.COMPLETED)
        if kept:
            ends = [
                (row, waited.get(row[Column.ID]), kept.get((row[Column.ID], row[Column.FENCE])))
                for row in rows
            ]
            return await self._settle(complete_with_results(engine), ends, notes, connection)
        if waited:
            items = [(row, waited.get(row[Column.ID])) for row in rows]
            return await self._settle(complete_after_waits(engine), items, notes, connection)
        return await self._settle(engine.leases.complete, rows, notes, connection)

    async def defer(
        self,
        messages: Iterable[MessageFields],
        delay: Duration | None = None,
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
        most = self._database.options.max_payload
        trace = self._traceback(error)
        messages = list(listed_messages(messages))
        items = deferrals(messages, delay, at, state, reason, error, most, trace)
        progress = reason is None and error is None
        outcome = AttemptEnd.COMPLETED if progress else failed_as(error)
        notes = limit_notes(self._database.engine, messages, outcome)
        return await self._settle(self._database.engine.leases.defer, items, notes, connection)

    async def fail(
        self,
        messages: Iterable[MessageFields],
        reason: str = "failed",
        *,
        error: Error = None,
        connection: object = None,
    ) -> list[Settled]:
        """Makes many messages dead letters in one round trip, all with the same reason.

        >>> await queue.fail(messages, "the account was closed")
        """
        messages = list(listed_messages(messages))
        items = failures(messages, reason, error, self._traceback(error))
        notes = limit_notes(self._database.engine, messages, failed_as(error))
        return await self._settle(self._database.engine.leases.fail, items, notes, connection)

    async def _settle(
        self,
        verb: Callable[[Sequence[Item]], Plan[list[Settled]]],
        items: Sequence[Item],
        notes: list[LimitNote],
        connection: object,
    ) -> list[Settled]:
        """Tells their limits before the leases end, or in the caller's transaction."""
        note = self._database.engine.limits.note_limits
        if notes and connection is None:
            await self._database.run_items(note, notes)
        results = await self._database.run_items(verb, items, connection)
        if connection is not None and (kept := kept_notes(notes, results)):
            await self._database.run(note(kept), connection)
        return results

    async def extend(
        self,
        messages: Iterable[MessageFields],
        length: Duration | None = None,
        *,
        connection: object = None,
    ) -> list[Settled]:
        """Extends many leases in one round trip, by default to the client's lease from now on, and
        stores what ``message.progress()`` was told.

        >>> await queue.extend(messages)
        """
        messages = list(listed_messages(messages))
        items = extensions(messages, self._database.options.lease if length is None else length)
        if notes := notes_of(messages):
            return await self._database.run(
                self._database.engine.leases.extend(items, notes), connection
            )
        return await self._database.run_items(
            self._database.engine.leases.extend, items, connection
        )

    async def give_back(
        self,
        messages: Iterable[MessageFields],
        delay: Duration | None = None,
        *,
        connection: object = None,
    ) -> list[Settled]:
        """Gives many messages back in one round trip; the attempts are not counted.

        >>> await queue.give_back(messages)
        """
        items = returns(messages, delay)
        return await self._database.run_items(
            self._database.engine.leases.give_back, items, connection
        )

    async def once(
        self,
        connection: object,
        key: str,
        *,
        queue: str | None = None,
        keep: Duration = KEPT,
    ) -> bool:
        """Notes in the caller's transaction that ``key`` is done; True if it was not done before.

        The note and the caller's own writes commit together, so the work under the key is done
        once, however often it is attempted. The key is remembered for ``keep``, which must be
        longer than the message can take to come back.

        >>> if await queue.once(connection, f"invoice:{order.id}"): ...
        """
        if connection is None:
            raise InvalidOption(
                "once() needs your connection: the note is part of your transaction"
            )
        target = self._database.options.queue if queue is None else check_name("queue", queue)
        plan = self._database.engine.messages.once(
            target, check_name("key", key), check_duration("keep", keep)
        )
        return await self._database.run(plan, connection)

    async def cancel(self, ids: Iterable[int], *, running: bool = False) -> list[Cancelled]:
        """Ends waiting messages without an attempt; a leased one stays with its holder.

        With ``running=True`` the worker that holds a leased one is asked to stop its handler, which
        it learns within 10 seconds: an async handler is cancelled, a process ended, a handler in a
        thread sees ``message.cancel_requested``. The message then ends as cancelled and is not
        retried. A handler that ends before wins.

        >>> await queue.cancel([published.id], running=True)
        """
        wanted = check_ids(ids)
        if not wanted:
            return []
        engine = self._database.engine
        cancel = (
            engine.messages.cancel_running
            if check_flag("running", running)
            else engine.messages.cancel
        )
        return await self._database.run(cancel(wanted))


@explains_mistakes
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
