"""Parting from what does not end: a database that is silent, a handler that hears no cancellation.
The worker's own end waits for none of them for ever."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

PARTING = 2.0
"""Seconds for what is closed at the end: a database that answers does so much sooner."""


async def part(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Waits so long for what would only be good manners, and no longer."""
    task = asyncio.create_task(work)
    await asyncio.wait([task], timeout=seconds)
    if task.done():
        task.result()
    else:
        forsake(task)


async def cancel_all(tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
    """Cancels them and waits so long for their ends, whatever these are."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
        task.add_done_callback(_hear_out)
    _, stubborn = await asyncio.wait(tasks, timeout=seconds)
    for task in stubborn:
        forsake(task)


def forsake(task: asyncio.Task[None]) -> None:
    """Nobody waits for it any more, nor does the event loop at its end."""
    task.cancel()
    task.add_done_callback(_hear_out)
    asyncio._unregister_task(task)


def _hear_out(task: asyncio.Task[None]) -> None:
    """Or else asyncio would log that nobody did."""
    if not task.cancelled():
        task.exception()
