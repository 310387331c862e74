"""What defines a worker, without any connection: it can be sent to another process."""

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from laneway.client.aio.queue import AsyncQueue
from laneway.client.shards import database_names
from laneway.client.shared.checks import check_lease, check_list, check_number, check_queues
from laneway.client.shared.message_fields import MessageFields
from laneway.client.shared.options import ClientAddress, ClientOptions
from laneway.client.sync.queue import Queue
from laneway.clock import ProcessClock
from laneway.drivers.errors import masked
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, shown
from laneway.names import check_name

from .handlers import Handlers
from .outcomes import TracebackRule, checked_rule

Client = Queue | AsyncQueue


class ServedDatabase(NamedTuple):
    """One that a worker serves; ``name`` says which in logs and health."""

    name: str
    queue: Client
    weight: int

    @property
    def place(self) -> tuple[str, str]:
        return self.queue._address.place

    def serves(self, client: Client) -> bool:
        """Whether what the client publishes arrives here."""
        return client._address.database == self.queue._address.database


def checked_databases(given: object, weights: object) -> tuple[ServedDatabase, ...]:
    """``given`` is a client, several of them, or several by name; ``weights`` are in the same
    form."""
    if isinstance(given, Queue | AsyncQueue):
        given = [given]
    if isinstance(given, Mapping):
        names, clients = list(given), [_checked_client(one) for one in given.values()]
    elif isinstance(given, Iterable) and not isinstance(given, str):
        clients = [_checked_client(one) for one in given]
        names = database_names([client._address for client in clients])
    else:
        clients, names = [_checked_client(given)], ["database"]
    found = [
        ServedDatabase(check_name("database", name), client, weight)
        for name, client, weight in zip(
            names, clients, _checked_weights(weights, names), strict=True
        )
    ]
    if not found:
        raise InvalidOption("a worker needs a Queue or an AsyncQueue: there is none in the list")
    for one in found:
        mine = one.queue._address.database
        same = [other.name for other in found if other.queue._address.database == mine]
        if len(same) > 1:
            raise InvalidOption(
                f"{' and '.join(same)} are the same database and schema: give it once, and name "
                "its queues with queues="
            )
    return tuple(found)


def _checked_client(client: Any) -> Client:
    if isinstance(client, str):
        raise InvalidOption(
            f"a worker takes a Queue, not its URL {masked(client)!r}: write Worker(Queue(url))"
        )
    if not isinstance(client, Queue | AsyncQueue):
        raise InvalidOption(f"{shown(client)} is neither a Queue nor an AsyncQueue")
    return client


def _checked_weights(weights: object, names: list[str]) -> list[int]:
    if weights is None:
        return [1] * len(names)
    if isinstance(weights, Mapping):
        if unknown := [name for name in weights if name not in names]:
            raise InvalidOption(
                f"weights names {shown(unknown[0])}: the databases are {', '.join(names)}"
            )
        found = [weights.get(name, 1) for name in names]
    else:
        found = check_list("weights", weights)
    if len(found) != len(names):
        raise InvalidOption(f"{len(found)} weights for {len(names)} databases: give one for each")
    return [check_number("weight", weight, 1, 1000) for weight in found]


WhenEmpty = Callable[[AsyncQueue, timedelta | None], Awaitable[bool]]
"""Called with the run's client and with how long it is until there may be more, None if nothing is
known to come: whether the run goes on. Such a run does upkeep and fires schedules only in here, so
that nothing happens at the same time."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of a worker, checked."""

    queues: tuple[str, ...]
    concurrency: int
    lease: timedelta
    grace: timedelta
    unhandled_delay: timedelta
    unhandled_timeout: timedelta
    processes: int
    max_messages: int | None
    max_runtime: timedelta | None
    traceback: TracebackRule
    until_empty: bool = False
    when_empty: WhenEmpty | None = None


def checked_options(
    queues: Iterable[str],
    concurrency: int,
    lease: Duration,
    grace: Duration,
    unhandled_delay: Duration,
    unhandled_timeout: Duration,
    processes: int | None,
    max_messages: int | None,
    max_runtime: Duration | None,
    traceback: TracebackRule,
) -> WorkerOptions:
    if processes is None:
        processes = os.cpu_count() or 1
    return WorkerOptions(
        check_queues(queues),
        _checked_concurrency(concurrency),
        check_lease(lease),
        check_duration("grace", grace),
        check_duration("unhandled_delay", unhandled_delay),
        check_duration("unhandled_timeout", unhandled_timeout),
        check_number("processes", processes, 1, 1000),
        _checked_messages(max_messages),
        _checked_runtime(max_runtime),
        checked_rule(traceback),
    )


def changed_options(
    options: WorkerOptions, queues: Iterable[str] | None, concurrency: int | None
) -> WorkerOptions:
    """What is None stays as it is."""
    if queues is not None:
        options = replace(options, queues=check_queues(queues))
    if concurrency is not None:
        options = replace(options, concurrency=_checked_concurrency(concurrency))
    return options


def limited_options(
    options: WorkerOptions,
    until_empty: bool,
    max_messages: int | None,
    max_runtime: Duration | None,
) -> WorkerOptions:
    """Of one run; a limit that is None stays the worker's own."""
    if max_messages is not None:
        options = replace(options, max_messages=_checked_messages(max_messages))
    if max_runtime is not None:
        options = replace(options, max_runtime=_checked_runtime(max_runtime))
    return replace(options, until_empty=until_empty)


def _checked_messages(most: int | None) -> int | None:
    return None if most is None else check_number("max_messages", most, 1, 2**63 - 1)


def _checked_runtime(longest: Duration | None) -> timedelta | None:
    return None if longest is None else check_duration("max_runtime", longest)


def _checked_concurrency(concurrency: int) -> int:
    return check_number("concurrency", concurrency, 1, 10_000)


# Functions that are called when a worker starts, stops, and when a handler fails; middleware.

_log = logging.getLogger("laneway.worker")

Hook = Callable[..., Any]
Next = Callable[[], Awaitable[object]]
Middleware = Callable[[MessageFields, Next], Awaitable[object]]
When = Literal["start", "stop", "error", "dead"]


class Hooks:
    """Ordinary or async functions, in the order in which they were registered."""

    def __init__(self) -> None:
        self._hooks: dict[When, list[Hook]] = {"start": [], "stop": [], "error": [], "dead": []}

    def add(self, when: When, hook: Hook) -> None:
        self._hooks[when].append(hook)

    def include(self, other: "Hooks") -> None:
        for when, hooks in other._hooks.items():
            self._hooks[when].extend(hooks)

    def has(self, when: When) -> bool:
        return bool(self._hooks[when])

    async def call(self, when: When, *args: object) -> None:
        """Raises what a hook raises."""
        for hook in self._hooks[when]:
            result = hook(*args)
            if inspect.isawaitable(result):
                await result

    async def call_safely(self, when: When, *args: object) -> None:
        """Logs what a hook raises, which changes neither a message's outcome nor a stop."""
        try:
            await self.call(when, *args)
        except asyncio.CancelledError:
            raise
        except BaseException:  # sys.exit() too
            _log.exception("a hook for %s failed", when)


# Seconds: longer than a wait for a lock that the server ends.
_SHORTEST_CALL_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class WorkerDefinition:
    """``given`` are the options of the client that the worker was created with;
    ``queues_of_tasks`` is where its tasks are published to, whatever it serves."""

    address: ClientAddress
    given: ClientOptions
    options: WorkerOptions
    handlers: Handlers
    middleware: tuple[Middleware, ...]
    hooks: Hooks
    queues_of_tasks: tuple[str, ...]

    @property
    def of_a_test(self) -> bool:
        """Whether a test says what time it is: then leases run out by leaps."""
        return (self.address.clock or ProcessClock.current) is not None

    def _call_timeout(self) -> float | None:
        """An outcome whose write got no answer is written again before its lease ends."""
        given = self.address.call_timeout
        third = max(self.options.lease.total_seconds() / 3, _SHORTEST_CALL_TIMEOUT)
        return given if given is None else min(given, third)

    def open_client(self) -> AsyncQueue:
        """A new client: the given one may belong to another event loop, or to none."""
        address, given = self.address, self.given
        return AsyncQueue(
            address.url,
            name=given.queue,
            schema=address.schema,
            lease=self.options.lease,
            worker=given.worker,
            max_payload=given.max_payload,
            pool_size=address.pool_size,
            pooler=address.pooler,
            upkeep_every=given.upkeep_every,
            call_timeout=self._call_timeout(),
            clock=address.clock,
        )
