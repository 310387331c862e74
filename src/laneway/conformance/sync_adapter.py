"""The sync client behind the async client's interface, so that each case is written once.

A method is awaitable here if it is a coroutine function of the async twin; it then runs in a
thread, so that calls made at the same time really are.
"""

import asyncio
import inspect
from typing import Any, cast

from laneway.client.aio.dead_letters import AsyncDeadLetters, AsyncOperations
from laneway.client.aio.events import AsyncEvents
from laneway.client.aio.flow import AsyncFlow, AsyncFlowAddition, AsyncFlows
from laneway.client.aio.message import AsyncMessage
from laneway.client.aio.operate import AsyncChannel, AsyncLimits, AsyncNamedLimit
from laneway.client.aio.publish import AsyncTopic
from laneway.client.aio.queue import AsyncQueue
from laneway.client.aio.schedules import AsyncSchedules
from laneway.client.shared.claim import Claim
from laneway.client.sync.dead_letters import DeadLetters, Operations
from laneway.client.sync.events import Events
from laneway.client.sync.flow import Flow, FlowAddition, Flows
from laneway.client.sync.message import Message
from laneway.client.sync.operate import Channel, Limits, NamedLimit
from laneway.client.sync.publish import Topic
from laneway.client.sync.queue import Queue
from laneway.client.sync.schedules import Schedules

_TWINS: dict[type, type] = {
    Queue: AsyncQueue,
    Channel: AsyncChannel,
    DeadLetters: AsyncDeadLetters,
    Events: AsyncEvents,
    Flow: AsyncFlow,
    FlowAddition: AsyncFlowAddition,
    Flows: AsyncFlows,
    Limits: AsyncLimits,
    Message: AsyncMessage,
    NamedLimit: AsyncNamedLimit,
    Operations: AsyncOperations,
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

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._inner[name])

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
        return Claim([Awaiting(message) for message in value], value.status, value.look_again)
    return Awaiting(value) if type(value) in _TWINS else value
