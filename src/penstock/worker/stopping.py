"""The wish to stop: it may come before there is anything to stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Stopping:
    """Of one run of a worker. ``wanted`` ends it in good order, ``hurry`` without waiting."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self.hurry = asyncio.Event()

    def stop(self) -> None:
        self.wanted.set()

    def stop_now(self) -> None:
        self.hurry.set()
        self.wanted.set()


class CutOff(Exception):
    """What ran was cancelled by the event that it had been given."""


@asynccontextmanager
async def cut_off_by(event: asyncio.Event) -> AsyncIterator[None]:
    """Cancels what runs inside when the event is set, and raises CutOff then.

    In the caller's own task, not in one beside it: context variables that are set inside stay set.
    """
    limit = asyncio.timeout(None)
    try:
        async with limit:
            watching = asyncio.create_task(_expire(limit, event))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if limit.expired():
            raise CutOff from None
        raise


async def _expire(limit: asyncio.Timeout, event: asyncio.Event) -> None:
    await event.wait()
    limit.reschedule(asyncio.get_running_loop().time())
