"""Every method of the client that takes anything, by its name and the names of what it takes."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from laneway import AsyncQueue, NewMessage
from laneway.client.aio.dead_letters import AsyncDeadLetters
from laneway.client.aio.message import AsyncMessage
from laneway.client.aio.operate import AsyncChannel, AsyncNamedLimit
from laneway.client.aio.publish import AsyncTopic
from laneway.client.aio.schedules import AsyncSchedules

Arguments = dict[str, Any]
# What takes many messages: of one it is tried below.
_APART = {"complete", "defer", "fail", "extend", "give_back", "once", "publish_many", "decode"}
_NOT_DATA = {"self", "connection", "messages", "wanted", "channel name"}


class Call(NamedTuple):
    """``run`` gets the client, a claimed message if it ``needs_lease``, and the arguments."""

    parameters: frozenset[str]
    required: frozenset[str]
    takes_connection: bool
    run: Callable[[AsyncQueue, Any, Arguments], Awaitable[Any]]
    needs_lease: bool = False


def _call(owner: type, name: str, reach: Callable[[Any, Any, Arguments], Any]) -> Call:
    found = inspect.signature(getattr(owner, name)).parameters
    names = frozenset(found) - _NOT_DATA
    needed = frozenset(n for n in names if found[n].default is inspect.Parameter.empty)

    async def run(queue: AsyncQueue, message: Any, arguments: Arguments) -> Any:
        target = reach(queue, message, arguments)
        answer = getattr(target, name)(**arguments)
        return await answer if inspect.isawaitable(answer) else answer

    return Call(names, needed, "connection" in found, run, owner is AsyncMessage)


def _methods(owner: type) -> list[str]:
    return [
        name
        for name, member in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
        and frozenset(inspect.signature(member).parameters) - _NOT_DATA
        and not (owner is AsyncQueue and name in _APART)
        and not (owner in (AsyncTopic, AsyncMessage) and name in ("publish_many", "decode"))
    ]


async def _publish_many(queue: AsyncQueue, _: Any, arguments: Arguments) -> Any:
    connection = arguments.pop("connection", None)
    return await queue.publish_many([1, NewMessage(**arguments)], connection=connection)


def _channel(queue: AsyncQueue, _: Any, arguments: Arguments) -> Any:
    return queue.channel("limited")


_REACH: dict[type, Callable[[Any, Any, Arguments], Any]] = {
    AsyncQueue: lambda queue, message, arguments: queue,
    AsyncMessage: lambda queue, message, arguments: message,
    AsyncChannel: _channel,
    AsyncNamedLimit: lambda queue, message, arguments: queue.limits["hostile"],
    AsyncDeadLetters: lambda queue, message, arguments: queue.dead_letters,
    AsyncSchedules: lambda queue, message, arguments: queue.schedules,
    AsyncTopic: lambda queue, message, arguments: queue.topic("hostile"),
}
CALLS = {
    f"{owner.__name__.removeprefix('Async')}.{name}": _call(owner, name, reach)
    for owner, reach in _REACH.items()
    for name in _methods(owner)
} | {
    "Queue.publish_many": Call(
        frozenset(NewMessage.__slots__), frozenset(["payload"]), True, _publish_many
    ),
}
