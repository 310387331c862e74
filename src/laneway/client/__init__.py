"""The clients: ``aio`` is written by hand, ``sync`` is generated from it, both use ``shared``.

The nouns that a client hands out can be imported from here, for annotations; they are loaded when
they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laneway.drivers.caller.detect import AsyncExecutor, Executor

    from .aio.dead_letters import AsyncDeadLetters
    from .aio.events import AsyncEvents
    from .aio.operate import AsyncChannel
    from .aio.publish import AsyncPublishedMessage, AsyncTopic
    from .aio.schedules import AsyncSchedules
    from .shards import Shards
    from .sync.dead_letters import DeadLetters
    from .sync.events import Events
    from .sync.operate import Channel
    from .sync.publish import PublishedMessage, Topic
    from .sync.schedules import Schedules

__all__ = [
    "AsyncChannel",
    "AsyncDeadLetters",
    "AsyncEvents",
    "AsyncExecutor",
    "AsyncPublishedMessage",
    "AsyncSchedules",
    "AsyncTopic",
    "Channel",
    "DeadLetters",
    "Events",
    "Executor",
    "PublishedMessage",
    "Schedules",
    "Shards",
    "Topic",
]

_MODULE_OF = {
    "AsyncChannel": ".aio.operate",
    "AsyncDeadLetters": ".aio.dead_letters",
    "AsyncEvents": ".aio.events",
    "AsyncExecutor": "laneway.drivers.caller.detect",
    "AsyncPublishedMessage": ".aio.publish",
    "AsyncSchedules": ".aio.schedules",
    "AsyncTopic": ".aio.publish",
    "Channel": ".sync.operate",
    "DeadLetters": ".sync.dead_letters",
    "Events": ".sync.events",
    "Executor": "laneway.drivers.caller.detect",
    "PublishedMessage": ".sync.publish",
    "Schedules": ".sync.schedules",
    "Shards": ".shards",
    "Topic": ".sync.publish",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name], __name__), name)
