"""What operators look at: messages wherever they are, channels, what ended, totals, the clock."""

from collections.abc import Sequence
from datetime import datetime
from typing import cast, get_args

from penstock.errors import InvalidOption
from penstock.insight import (
    ChannelInfo,
    Finding,
    HistoryPage,
    MessageFilter,
    MessageInfo,
    MessageState,
    Totals,
)
from penstock.model import HistoryEntry
from penstock.names import check_kind, check_name

from .async_core import AsyncCore
from .checks import check_choice, check_ids, check_limit, check_number

_LAST_ID = 2**63 - 1


class AsyncInspecting:
    """Part of the client."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    async def messages(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        state: MessageState | None = None,
        limit: int = 100,
        after: int = 0,
    ) -> Sequence[MessageInfo]:
        """Up to ``limit`` messages by id, of all queues if none is named; the next page comes
        ``after`` the last one's id. Dead letters only if their state is asked for.

        >>> page = await queue.messages(queue="emails", state="leased")
        """
        if state is not None:
            state = cast(MessageState, check_choice("the state", state, get_args(MessageState)))
        wanted = MessageFilter(
            None if queue is None else check_name("queue", queue),
            None if channel is None else check_name("channel", channel),
            None if kind is None else check_kind(kind),
            state,
        )
        after = check_number("after", after, 0, _LAST_ID)
        return await self._core.run(self._core.engine.messages(wanted, check_limit(limit), after))

    async def message(self, message_id: int) -> MessageInfo | None:
        """Where a message is now: waiting, scheduled, leased or dead. None once it has ended;
        then its history says how.

        >>> info = await queue.message(9182)
        """
        (wanted,) = check_ids([message_id])
        return await self._core.run(self._core.engine.message(wanted))

    async def payload(self, message_id: int) -> bytes | None:
        """The payload of a message that has not ended, dead letters included."""
        (wanted,) = check_ids([message_id])
        return await self._core.run(self._core.engine.payload(wanted))

    async def channels(
        self, *, queue: str | None = None, paused: bool | None = None, limit: int = 1000
    ) -> Sequence[ChannelInfo]:
        """Channels that hold anything or have a policy, with both, the fullest first.

        >>> stuck = await queue.channels(paused=True)
        """
        if queue is not None:
            queue = check_name("queue", queue)
        if paused is not None and not isinstance(paused, bool):
            raise InvalidOption(f"paused must be bool, not {type(paused).__name__}")
        return await self._core.run(self._core.engine.channels(queue, paused, check_limit(limit)))

    async def history(self, message_id: int) -> list[HistoryEntry]:
        """What happened to a message, one entry per finished attempt, oldest first.

        >>> [entry.outcome for entry in await queue.history(message.id)]
        """
        (wanted,) = check_ids([message_id])
        return await self._core.run(self._core.engine.history(wanted))

    async def history_since(self, position: str | None = None, *, limit: int = 1000) -> HistoryPage:
        """What ended since a position, of all queues; without one, only the position of now.

        Whoever goes on from the answer's position misses nothing and sees nothing twice, but waits
        for writing transactions that are still open.

        >>> entries, position = await queue.history_since(position)
        """
        return await self._core.run(self._core.engine.history_since(position, check_limit(limit)))

    async def totals(self) -> Totals:
        """Numbers that only rise, for rates: two of them and the time between."""
        return await self._core.run(self._core.engine.totals())

    async def clock(self) -> datetime:
        """What time it is for the database, which is the only clock that counts."""
        return await self._core.run(self._core.engine.clock())

    async def examine(self) -> Sequence[Finding]:
        """What could go wrong or has, and how to mend it, as far as the database can say; works
        where nothing is installed too. ``penstock doctor`` adds what this machine can say.

        >>> [finding for finding in await queue.examine() if finding.level != "ok"]
        """
        return await self._core.run(self._core.engine.examine())
