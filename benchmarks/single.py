"""One message at a time: publishing and consuming tasks on one client, through the plain API."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from laneway import AsyncQueue

from . import counters
from .bare_tasks import BareQueue
from .bench import PAYLOAD, Bench
from .clients import Run
from .sides import SIDES

TASKS = 8
DRIVERS = ("psycopg", "asyncpg")
_WARM = 400
_IDLE = 0.001  # seconds before a consumer that found nothing looks again


def loops() -> list[str]:
    return ["asyncio", "uvloop"] if find_spec("uvloop") else ["asyncio"]


class Message(Protocol):
    async def complete(self) -> None: ...


class Tasks(Protocol):
    """What both sides have."""

    async def publish(self, payload: bytes, *, channel: str) -> object: ...

    async def claim(self, limit: int) -> Sequence[Message]: ...


def single(bench: Bench, side: str, channels: int, messages: int, driver: str, loop: str) -> Run:
    with bench.database(installed=False) as url:
        client = SIDES[side](url)
        client.create()
        client.close()
        seen = counters.statements(bench, url)
        before = counters.read(bench)
        seconds = _runner(loop)(_session(_queue(side, url, driver), channels, messages))
        cost = counters.read(bench).since(before)
        statements = counters.statements(bench, url) - seen
    total = messages + _WARM
    return Run(messages / seconds, messages, statements / total, cost.per(total))


def _queue(side: str, url: str, driver: str) -> AbstractAsyncContextManager[Tasks]:
    if side == "bare":
        return BareQueue(url, driver)
    return AsyncQueue(f"postgresql+{driver}" + url.removeprefix("postgresql"))


def _runner(loop: str) -> Callable[[Coroutine[Any, Any, float]], float]:
    if loop == "asyncio":
        return asyncio.run
    return import_module(loop).run  # type: ignore[no-any-return]


async def _session(
    tasks: AbstractAsyncContextManager[Tasks], channels: int, messages: int
) -> float:
    async with tasks as queue:
        await exchange(queue, channels, _WARM)
        began = time.perf_counter()
        await exchange(queue, channels, messages)
        return time.perf_counter() - began


async def exchange(queue: Tasks, channels: int, messages: int) -> None:
    """Publishes and consumes at the same time, until all are completed."""
    left = messages

    async def publish(first: int) -> None:
        for number in range(first, messages, TASKS):
            await queue.publish(PAYLOAD, channel=f"c{number % channels}")

    async def consume() -> None:
        nonlocal left
        while left > 0:
            claim = await queue.claim(limit=1)
            if not claim:
                await asyncio.sleep(_IDLE)
            for message in claim:
                await message.complete()
                left -= 1

    tasks = [publish(first) for first in range(TASKS)] + [consume() for _ in range(TASKS)]
    await asyncio.gather(*tasks)
