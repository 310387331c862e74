"""The sync client behind the async client's interface, so that each case is written once.

A method is awaitable here if it is a coroutine function of the async twin; it then runs in a
thread, so that calls made at the same time really are.
"""

import asyncio
import inspect
from typing import Any, cast

from penstock.client.async_channel import AsyncChannel
from penstock.client.async_dead_letters import AsyncDeadLetters
from penstock.client.async_events import AsyncEvents
from penstock.client.async_message import AsyncMessage
from penstock.client.async_queue import AsyncQueue
from penstock.client.async_schedules import AsyncSchedules
from penstock.client.async_topic import AsyncTopic
from penstock.client.claim import Claim
from penstock.client.sync_channel import Channel
from penstock.client.sync_dead_letters import DeadLetters
from penstock.client.sync_events import Events
from penstock.client.sync_message import Message
from penstock.client.sync_queue import Queue
from penstock.client.sync_schedules import Schedules
from penstock.client.sync_topic import Topic

_TWINS: dict[type, type] = {
    Queue: AsyncQueue,
    Channel: AsyncChannel,
    DeadLetters: AsyncDeadLetters,
    Events: AsyncEvents,
    Message: AsyncMessage,
    Schedules: AsyncSchedules,
    Topic: AsyncTopic,
}


class Awaiting:
    """Wraps a sync object; its answers are wrapped in turn."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._twin = _TWINS[type(inner)]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return _wrapped(value)
        if not inspect.iscoroutinefunction(getattr(self._twin, name)):
            return lambda *args, **kwargs: _wrapped(value(*args, **kwargs))

        async def call(*args: Any, **kwargs: Any) -> Any:
            return _wrapped(await asyncio.to_thread(value, *args, **kwargs))

        return call

    async def __aenter__(self) -> "Awaiting":
        await asyncio.to_thread(self._inner.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._inner.__exit__, *error)

    def __aiter__(self) -> "Awaiting":
        return self

    async def __anext__(self) -> Any:
        value = await asyncio.to_thread(next, self._inner, _END)
        if value is _END:
            raise StopAsyncIteration
        return value


_END = object()


def awaiting(queue: Queue) -> AsyncQueue:
    return cast(AsyncQueue, Awaiting(queue))


def _wrapped(value: Any) -> Any:
    if isinstance(value, Claim):
        return Claim([Awaiting(message) for message in value], value.answer, value.look_again)
    return Awaiting(value) if type(value) in _TWINS else value
