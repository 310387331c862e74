"""claim, and the upkeep that claims run."""

import logging
import time
from collections.abc import Iterable
from datetime import timedelta

from laneway.client.shared.checks import check_kinds, check_lease, check_limit, check_queues
from laneway.client.shared.claim import Claim, busy_if_locked, distribute
from laneway.clock import ProcessClock
from laneway.durations import Duration
from laneway.errors import DatabaseFailed, SchemaError
from laneway.model import UpkeepReport
from laneway.plan import Taken
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase
from .dead_letters import AsyncOperations
from .message import AsyncMessage, AsyncSettleVerbs

_log = logging.getLogger("laneway")

# Parts of bulk operations that one upkeep does.
_STEPS = 5


@explains_mistakes
class AsyncClaimVerbs:
    """A part of the client: claim and upkeep."""

    def __init__(self, database: AsyncDatabase, settling: AsyncSettleVerbs) -> None:
        self._database = database
        self._settling = settling
        self._queues = (database.options.queue,)
        self._next_upkeep = 0.0
        self._moves = ProcessClock.moves  # of a test's clock

    async def claim(
        self,
        limit: int = 1,
        *,
        queues: Iterable[str] | None = None,
        lease: Duration | None = None,
        kinds: Iterable[str] | None = None,
    ) -> Claim[AsyncMessage]:
        """Takes up to ``limit`` messages under leases, fairly over the channels of the queues; only
        of these ``kinds``, if they are given.

        Always uses a connection of the client's own, and is committed when it returns. Runs upkeep
        first if ``upkeep_every`` has passed.

        >>> for message in await queue.claim(limit=10, lease=timedelta(minutes=5)): ...
        """
        limit = check_limit(limit)
        names = self._queues if queues is None else check_queues(queues)
        length = self._database.options.lease if lease is None else check_lease(lease)
        wanted = None if kinds is None else check_kinds(kinds)
        await self._upkeep_if_due()
        if self._database.options.group_commit:
            taken = await self._claim_together(names, length, limit, wanted)
        else:
            taken = await self._claim(names, length, limit, wanted)
        return Claim(self._messages(taken), taken.status, taken.look_again)

    async def upkeep(self) -> UpkeepReport:
        """Periodic maintenance: expired leases, lapsed messages, partitions, retention, and part
        of the bulk operations that run.

        Any process may run it at any time. Claims run it by themselves unless ``upkeep_every`` is
        None.

        >>> report = await queue.upkeep()
        """
        report = await self._database.run(self._database.engine.maintenance.upkeep())
        for _ in range(_STEPS):
            if await AsyncOperations(self._database).step() is None:
                break
        return report

    async def _claim(
        self, queues: tuple[str, ...], lease: timedelta, limit: int, kinds: tuple[str, ...] | None
    ) -> Taken:
        """Somebody who keeps all channels with work locked (an open transaction) makes it busy."""
        worker = self._database.options.worker
        try:
            plan = self._database.engine.claims.claim(queues, limit, lease, worker, kinds)
            return await self._database.run(plan)
        except DatabaseFailed as error:
            return busy_if_locked(error)

    async def _claim_together(
        self, queues: tuple[str, ...], lease: timedelta, limit: int, kinds: tuple[str, ...] | None
    ) -> Taken:
        async def flush(limits: list[int]) -> list[Taken]:
            return distribute(await self._claim(queues, lease, sum(limits), kinds), limits)

        key = ("claim", queues, lease, kinds)
        undo = self._take_back
        return await self._database.merge(key, flush, int, limit, undo, after="complete")  # type: ignore[no-any-return]

    async def _take_back(self, taken: Taken) -> None:
        """The caller was cancelled: its messages are given back."""
        await self._settling.give_back(self._messages(taken))

    def _messages(self, taken: Taken) -> list[AsyncMessage]:
        claimed_at, until = taken.claimed_at, taken.until
        if claimed_at is None or until is None:
            return []
        return [AsyncMessage(row, claimed_at, until, self._settling) for row in taken.rows]

    async def _upkeep_if_due(self) -> None:
        every = self._database.options.upkeep_every
        now = time.monotonic()
        moves = ProcessClock.moves
        if every is None or (now < self._next_upkeep and moves == self._moves):
            return
        self._next_upkeep, self._moves = now + every.total_seconds(), moves
        try:
            await self.upkeep()
        except (DatabaseFailed, SchemaError) as error:
            # It will be tried again, here or by another process; the claim need not wait for it.
            # A schema that is older than this client has all that a claim needs, until its upgrade.
            _log.warning("upkeep failed: %s", error)
