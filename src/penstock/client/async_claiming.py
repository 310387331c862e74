"""claim, and the upkeep that goes with it."""

import logging
import time
from collections.abc import Iterable
from datetime import timedelta

from penstock.contract import Taken
from penstock.errors import DatabaseFailed
from penstock.model import UpkeepReport

from .async_core import AsyncCore
from .async_message import AsyncMessage
from .async_settling import AsyncSettling
from .checks import check_lease, check_limit, check_queues
from .claim import Claim
from .distribution import distribute

_log = logging.getLogger("penstock")


class AsyncClaiming:
    """Part of the client."""

    def __init__(self, core: AsyncCore, settling: AsyncSettling) -> None:
        self._core = core
        self._settling = settling
        self._queues = (core.options.queue,)
        self._next_upkeep = 0.0

    async def claim(
        self,
        limit: int = 1,
        *,
        queues: Iterable[str] | None = None,
        lease: timedelta | None = None,
    ) -> Claim[AsyncMessage]:
        """Takes up to ``limit`` messages under leases, fairly over the channels of the queues.

        Always on a connection of our own, and committed when it answers. Runs upkeep first if
        ``upkeep_every`` has passed.

        >>> for message in await queue.claim(limit=10, lease=timedelta(minutes=5)): ...
        """
        limit = check_limit(limit)
        names = self._queues if queues is None else check_queues(queues)
        length = self._core.options.lease if lease is None else check_lease(lease)
        await self._upkeep_if_due()
        if self._core.options.coalesce:
            taken = await self._claim_together(names, length, limit)
        else:
            taken = await self._claim(names, length, limit)
        return Claim(self._messages(taken), taken.answer, taken.look_again)

    async def upkeep(self) -> UpkeepReport:
        """Does what time brings: expired leases, lapsed messages, partitions, retention.

        Any process may run it as often as it likes. Claims do so by themselves, unless
        ``upkeep_every`` is None.

        >>> report = await queue.upkeep()
        """
        return await self._core.run(self._core.engine.upkeep())

    async def _claim(self, queues: tuple[str, ...], lease: timedelta, limit: int) -> Taken:
        worker = self._core.options.worker or ""
        return await self._core.run(self._core.engine.claim(queues, limit, lease, worker))

    async def _claim_together(self, queues: tuple[str, ...], lease: timedelta, limit: int) -> Taken:
        async def flush(limits: list[int]) -> list[Taken]:
            return distribute(await self._claim(queues, lease, sum(limits)), limits)

        key = ("claim", queues, lease)
        undo = self._take_back
        return await self._core.merge(key, flush, int, limit, undo, after="complete")  # type: ignore[no-any-return]

    async def _take_back(self, taken: Taken) -> None:
        """The caller is gone: its messages wait again."""
        await self._settling.give_back(self._messages(taken))

    def _messages(self, taken: Taken) -> list[AsyncMessage]:
        claimed_at, until = taken.claimed_at, taken.until
        if claimed_at is None or until is None:
            return []
        return [AsyncMessage(row, claimed_at, until, self._settling) for row in taken.rows]

    async def _upkeep_if_due(self) -> None:
        every = self._core.options.upkeep_every
        now = time.monotonic()
        if every is None or now < self._next_upkeep:
            return
        self._next_upkeep = now + every.total_seconds()
        try:
            await self.upkeep()
        except DatabaseFailed as error:
            # It will be tried again, here or by another process; the claim need not wait for it.
            _log.warning("upkeep failed: %s", error)
