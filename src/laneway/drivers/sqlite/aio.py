"""SQLite for asyncio: a whole plan runs in a thread, so that a verb of ten statements switches
threads once, and waiting for a lock does not block the event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from laneway.plan import Plan

from .busy_retry import BUSY_TIMEOUT
from .sync import SqliteRunner

T = TypeVar("T")


class AsyncSqliteRunner:
    """Connects on the first call."""

    def __init__(
        self, url: str, *, pool_size: int, pooler: bool = False, wait: float = BUSY_TIMEOUT
    ) -> None:
        self._inner = SqliteRunner(url, pool_size=pool_size, wait=wait)
        self._pool_size = pool_size
        self._threads: ThreadPoolExecutor | None = None

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._pool_size, "laneway sqlite")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(self._inner.run, plan))

    async def close(self) -> None:
        """Waits for running calls; the next call connects again."""
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        self._inner.close()
