"""The client: one queue in one schema of one database, for asyncio."""

from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self

from penstock.drivers.choice import open_async_runner
from penstock.drivers.faults import masked
from penstock.payload import MAX_PAYLOAD

from .async_claiming import AsyncClaiming
from .async_core import AsyncCore
from .async_inspecting import AsyncInspecting
from .async_listening import AsyncListening
from .async_operating import AsyncOperating
from .async_publishing import AsyncPublishing
from .async_scheduling import AsyncScheduling
from .async_settling import AsyncSettling
from .checks import check_number
from .engine_choice import Clock, open_engine
from .forking import start_anew_after_fork
from .options import LEASE, UPKEEP_EVERY, Address, Options


class AsyncQueue(
    AsyncPublishing,
    AsyncClaiming,
    AsyncSettling,
    AsyncScheduling,
    AsyncListening,
    AsyncOperating,
    AsyncInspecting,
):
    """A client of the queues in one schema; connects at its first call.

    ``queue`` is where messages are published to and claimed from when a call names none.
    ``pooler`` says that the URL leads to PgBouncer in transaction mode. With ``coalesce``, calls
    made at the same time share round trips and commits. ``clock`` replaces the database's clock in
    tests. Use it in one event loop, as a context manager or with ``close()``.

    >>> async with AsyncQueue("postgresql://localhost/shop") as queue:
    ...     await queue.install()
    ...     await queue.publish({"order": 9182}, channel="tenant-42")
    """

    def __init__(
        self,
        url: str,
        *,
        queue: str = "default",
        schema: str = "penstock",
        lease: timedelta = LEASE,
        worker: str | None = None,
        max_payload: int = MAX_PAYLOAD,
        pool_size: int = 10,
        pooler: bool = False,
        coalesce: bool = True,
        upkeep_every: timedelta | None = UPKEEP_EVERY,
        clock: Clock | None = None,
    ) -> None:
        check_number("pool_size", pool_size, 1, 1000)
        options = Options(queue, lease, worker, max_payload, coalesce, upkeep_every)
        engine = open_engine(url, schema, clock)
        open_own = partial(open_async_runner, url, pool_size=pool_size, pooler=pooler)
        core = AsyncCore(engine, open_own(), options)
        start_anew_after_fork(core, open_own)
        AsyncPublishing.__init__(self, core)
        AsyncClaiming.__init__(self, core, self)
        AsyncOperating.__init__(self, core)
        self._address = Address(url, schema, pool_size, pooler, clock)
        self._shown = f"{masked(url)}, queue {queue!r}, schema {schema!r}"

    @property
    def name(self) -> str:
        """The queue for calls that name none."""
        return self._core.options.queue

    @property
    def worker(self) -> str:
        """The name under which this client holds leases."""
        return self._core.options.worker or ""

    async def close(self) -> None:
        """Waits for the calls under way and closes the connections."""
        await self._core.close()

    async def __aenter__(self) -> Self:
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
