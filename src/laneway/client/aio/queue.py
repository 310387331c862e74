"""The client: one queue in one schema of one database, for asyncio."""

from functools import partial
from types import TracebackType
from typing import Self

from laneway.client.shared.checks import check_number, check_switch
from laneway.client.shared.options import (
    LEASE,
    UPKEEP_EVERY,
    ClientAddress,
    WrongWith,
    check_call_timeout,
    client_options,
    open_engine,
    start_anew_after_fork,
)
from laneway.clock import Clock
from laneway.drivers.choice import open_async_runner
from laneway.drivers.database_url import database_url
from laneway.drivers.deadline import CALL_TIMEOUT
from laneway.drivers.errors import masked
from laneway.durations import Duration
from laneway.payload import MAX_PAYLOAD
from laneway.spelling import explains_call, explains_mistakes

from .claim import AsyncClaimVerbs
from .control import AsyncControlVerbs
from .database import AsyncDatabase
from .events import AsyncListenVerbs
from .flow import AsyncFlowVerbs
from .inspect import AsyncInspectVerbs
from .message import AsyncSettleVerbs
from .operate import AsyncOperateVerbs
from .publish import AsyncPublishVerbs
from .schedules import AsyncScheduleVerbs


@explains_mistakes
class AsyncQueue(
    AsyncPublishVerbs,
    AsyncFlowVerbs,
    AsyncClaimVerbs,
    AsyncSettleVerbs,
    AsyncScheduleVerbs,
    AsyncListenVerbs,
    AsyncOperateVerbs,
    AsyncControlVerbs,
    AsyncInspectVerbs,
    WrongWith,
):
    """A client of the queues in one schema; connects at its first call.

    ``name`` is the queue that calls without ``queue=`` publish to and claim from. ``pooler`` says
    that the URL leads to PgBouncer in transaction mode. With ``group_commit``, calls made at the
    same time share round trips and commits. A server that is silent for ``call_timeout`` loses the
    connection, and the call raises ConnectionUnavailable, or OutcomeUnknown if it may have been
    carried out. ``clock`` replaces the database's clock in tests.
    Use it in one event loop, as a context manager or with ``close()``.

    >>> async with AsyncQueue("postgresql://localhost/shop") as queue:
    ...     await queue.install()
    ...     await queue.publish({"order": 9182}, channel="tenant-42")
    """

    @explains_call
    def __init__(
        self,
        url: str,
        *,
        name: str = "default",
        schema: str = "laneway",
        lease: Duration = LEASE,
        worker: str | None = None,
        max_payload: int = MAX_PAYLOAD,
        pool_size: int = 10,
        pooler: bool = False,
        group_commit: bool = True,
        upkeep_every: Duration | None = UPKEEP_EVERY,
        call_timeout: Duration | None = CALL_TIMEOUT,
        clock: Clock | None = None,
    ) -> None:
        check_number("pool_size", pool_size, 1, 1000)
        check_switch("pooler", pooler)
        options = client_options(name, lease, worker, max_payload, group_commit, upkeep_every)
        url = database_url(url)
        engine = open_engine(url, schema, clock)
        seconds = check_call_timeout(call_timeout)
        open_own = partial(
            open_async_runner, url, pool_size=pool_size, pooler=pooler, call_timeout=seconds
        )
        database = AsyncDatabase(engine, open_own(), options)
        start_anew_after_fork(database, open_own)
        AsyncPublishVerbs.__init__(self, database)
        AsyncClaimVerbs.__init__(self, database, self)
        AsyncOperateVerbs.__init__(self, database)
        self._address = ClientAddress(url, schema, pool_size, pooler, clock, seconds)
        self._shown = f"{masked(url)}, queue {name!r}, schema {schema!r}"

    @property
    def database(self) -> AsyncDatabase:
        """Runs the plans of the engine, for other parts of Laneway: it may change in any release.

        >>> await queue.database.run(queue.database.engine.inspection.clock())
        """
        return self._database

    @property
    def name(self) -> str:
        """The queue for calls that name none."""
        return self._database.options.queue

    @property
    def worker(self) -> str:
        """The name under which this client holds leases."""
        return self._database.options.worker

    async def close(self) -> None:
        """Waits for the calls under way and closes the connections."""
        await self._database.close()

    async def __aenter__(self) -> Self:
        self._database.reopen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._shown}>"
