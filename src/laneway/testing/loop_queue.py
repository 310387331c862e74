"""An AsyncQueue for a fixture that is not async, whichever plugin runs the event loop."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

from laneway.client.aio.queue import AsyncQueue
from laneway.drivers.runner import AsyncRunner
from laneway.plan import Plan

T = TypeVar("T")


class LoopRunner:
    """Runs what the queue asks for, and has the queue closed when its event loop ends.

    A loop that is closed in order (by asyncio.run, anyio, pytest-asyncio) first closes the async
    generators that were begun in it, and one of them is ours.
    """

    def __init__(self, queue: AsyncQueue) -> None:
        self._queue = queue
        self._runner: AsyncRunner = queue.database._runner
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: AsyncGenerator[None, None] | None = None
        queue.database._runner = self

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._queue.database.reopen()
            self._closing = self._until_closed()
            await anext(self._closing)
        return await self._runner.run(plan, atomic=atomic)

    async def close(self) -> None:
        await self._runner.close()

    async def _until_closed(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self._queue.close()

    def end(self) -> None:
        """After the test: its loop is closed, or it waits for the next test."""
        if self._loop is not None and not self._loop.is_closed() and self._closing is not None:
            self._loop.run_until_complete(self._closing.aclose())
