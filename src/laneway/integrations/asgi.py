"""FastAPI, Starlette and every other ASGI framework with a lifespan."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from laneway.client.aio.queue import AsyncQueue
from laneway.worker.worker import Worker

_log = logging.getLogger("laneway")

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def lifespan(queue: AsyncQueue, *workers: Worker, install: bool = False) -> Lifespan:
    """What to pass as ``lifespan``: the app publishes with ``queue``, ``workers`` run beside it.

    When the app stops, the workers stop in good order and the queue is closed. With ``install``
    the schema is installed or upgraded first.

    >>> app = FastAPI(lifespan=lifespan(queue, worker))
    """

    @asynccontextmanager
    async def living(app: Any) -> AsyncIterator[None]:
        async with queue:
            if install:
                await queue.install()
            async with _at_work(workers):
                yield

    return living


@asynccontextmanager
async def _at_work(workers: tuple[Worker, ...]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(worker.serve()) for worker in workers]
    for task in tasks:
        task.add_done_callback(_tell)
    try:
        # A task that has not begun yet would not hear of a stop.
        await asyncio.sleep(0)
        yield
    finally:
        for worker in workers:
            worker.stop()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell(task: "asyncio.Task[None]") -> None:
    """The app lives on without its worker; somebody should know."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a worker of the application ended: %s", error, exc_info=error)
