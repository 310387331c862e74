"""Two tasks of one kind in one queue: whichever worker takes a message runs what it has under the
kind, so that two functions, or two types of payload, would be mixed up without a word."""

from collections.abc import Iterable
from inspect import unwrap
from itertools import product
from typing import Any
from weakref import WeakSet

from laneway.client.aio.queue import AsyncQueue
from laneway.client.sync.queue import Queue
from laneway.errors import InvalidOption

Client = Queue | AsyncQueue
_together: dict[tuple[object, ...], "WeakSet[Any]"] = {}
"""The tasks of this process, by where their messages lie."""


def check_kinds(tasks: Iterable[Any], clients: Iterable[Client]) -> None:
    """Raises InvalidOption if one of the tasks, which publish through these clients, does not go
    together with another task of this process."""
    for client, task in product(clients, tasks):
        place = _place(task, client)
        there = _together.setdefault(place, WeakSet())
        for other in there:
            if other is task or all(_place(other, one) != place for one in other.clients):
                continue  # it was bound elsewhere since
            if why := _misfit(task, other):
                raise InvalidOption(
                    f"two tasks of kind {task.kind!r} are published to the queue {place[-2]!r}: "
                    f"{why}; give one of them a kind or a queue of its own"
                )
        there.add(task)


def _place(task: Any, client: Client) -> tuple[object, ...]:
    database = client._address.database
    apart = id(client) if ":memory:" in database else None
    return *database, apart, task.queue or client.name, task.kind


def _misfit(task: Any, other: Any) -> str | None:
    if task.handler is not None and other.handler is not None:
        names = sorted([task.handler.name, other.handler.name])
        sources = {_source(task.handler.function), _source(other.handler.function)}
        return " and ".join(names) if len(sources) == 2 and None not in sources else None
    if other.handler is None:
        task, other = other, task  # the declared one, and who gets what it publishes
    if other.handler is None:
        return None
    why = task.parameters.misfit(other.parameters)
    return why and f"one that is declared does not fit {other.handler.name}, {why}"


def _source(function: Any) -> tuple[str, str] | None:
    """The same for a module that was imported under two names. None for functions that are made at
    run time, e.g. by each of many tests."""
    code = getattr(unwrap(function), "__code__", None)
    if code is None or "<locals>" in function.__qualname__:
        return None
    return code.co_filename, code.co_qualname
