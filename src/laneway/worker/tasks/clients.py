"""How the messages of a task are published: by which client, with which options."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict, TypeVar
from weakref import WeakSet

from laneway.client.aio.queue import AsyncQueue
from laneway.client.shards import Shards
from laneway.client.shared.checks import blocks_a_loop
from laneway.client.sync.publish import PublishedMessage
from laneway.client.sync.queue import Queue
from laneway.durations import Duration
from laneway.errors import InvalidCall, InvalidOption, shown
from laneway.event import MessageEnd
from laneway.model import KeyScope, Names, OnDuplicate, Published
from laneway.shared_limits import check_limits
from laneway.spelling import option_hint

from .kinds import check_kinds

# How the messages of a task are published: options of the task, of its collection, of one call.

ByArguments = str | Callable[..., str]
"""A text, or a function of the call's arguments that returns it."""


class PublishOptions(TypedDict, total=False):
    """As those of ``queue.publish``. ``channel``, ``key`` and ``limits`` may be functions that get
    the call's arguments and return the text, or the list. None takes back what the task or the
    collection says."""

    queue: str | None
    channel: ByArguments | None
    key: ByArguments | None
    key_scope: KeyScope | None
    key_window: Duration | None
    on_duplicate: OnDuplicate | None
    debounce_for: Duration | None
    headers: Mapping[str, Any] | None
    priority: int | None
    delay: Duration | None
    at: datetime | None
    expires_in: Duration | None
    expires_at: datetime | None
    max_attempts: int | None
    keep_result: Duration | None
    limits: Names | Callable[..., Names] | None


_KNOWN = PublishOptions.__optional_keys__
# One replaces the other.
_INSTEAD = {"delay": "at", "at": "delay", "expires_in": "expires_at", "expires_at": "expires_in"}


def merged(
    before: Mapping[str, Any], given: Mapping[str, Any], also: Iterable[str] = ()
) -> dict[str, Any]:
    """The later ones win; None removes what was there. ``also`` are the other options of the call,
    which may be meant by a name that does not exist."""
    options = dict(before)
    for name, value in given.items():
        if name not in _KNOWN:
            hint = option_hint(name, [*also, *sorted(_KNOWN)])
            raise InvalidOption(f"a task has no option {name}=: {hint}")
        options.pop(_INSTEAD.get(name, ""), None)
        if name == "limits" and value is not None and not callable(value):
            value = check_limits(value)
        if value is None:
            options.pop(name, None)
        else:
            options[name] = value
    return options


def resolved(options: Mapping[str, Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """With the channel, the key and the limits of this call."""
    found = dict(options)
    for name in ("channel", "key"):
        if callable(choose := found.get(name)):
            found[name] = _chosen(name, choose(*args, **kwargs))
    if callable(choose := found.get("limits")):
        found["limits"] = check_limits(choose(*args, **kwargs))
    return found


def _chosen(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidOption(
            f"the function that names the {name} returned {shown(value)}: it must return a text"
        )
    return value


# The client that a task publishes through: that of its worker, or the one that it was bound to.

T = TypeVar("T")
C = TypeVar("C", Queue, AsyncQueue)


@dataclass(frozen=True, slots=True)
class RunningClient:
    """The client of a worker that is running, and the event loop that it belongs to; ``clients``
    are those of all its databases, if there are several."""

    client: AsyncQueue
    loop: asyncio.AbstractEventLoop
    clients: Mapping[tuple[str, str], AsyncQueue] = field(default_factory=dict)

    def for_place(self, client: Any) -> AsyncQueue | None:
        """Its own client for the database and queue of another client."""
        place = _place(client)
        found = self.clients.get(place[:2], self.client)
        return found if _place(found) == place else None


running: ContextVar[RunningClient | None] = ContextVar("laneway_running", default=None)
"""Set in the event loop of a worker, and so in its handlers."""


class TaskClients:
    """At most one of each kind; all tasks of a collection share them."""

    def __init__(self) -> None:
        self._sync: Any = None
        self._async: Any = None
        self._lent = False
        self._tasks = WeakSet[Any]()

    def add(self, task: Any) -> None:
        """A task that publishes through them, once they are there."""
        check_kinds([task], self.queues())
        self._tasks.add(task)

    @property
    def any(self) -> Any:
        """None if there is none yet."""
        return self._sync or self._async

    def queues(self) -> list[Queue | AsyncQueue]:
        """Those that somebody chose, and whose database is known: not a test's double."""
        if self._lent:
            return []
        bound = [one for one in (self._sync, self._async) if one is not None]
        each = [one.values() if isinstance(one, Shards) else [one] for one in bound]
        return [one for many in each for one in many if isinstance(one, Queue | AsyncQueue)]

    def bind(self, *clients: Any) -> None:
        """A Queue, an AsyncQueue, Shards of them, or anything that publishes as a Queue does."""
        before = self._sync, self._async, self._lent
        if self._lent:
            self._sync = self._async = None
            self._lent = False
        for client in clients:
            if isinstance(_sample(client), AsyncQueue):
                self._async = client
            elif hasattr(client, "publish") and not isinstance(client, type):
                self._sync = client
            else:
                raise InvalidOption(f"{shown(client)} is neither a Queue nor an AsyncQueue")
        try:
            check_kinds(self._tasks, self.queues())
        except InvalidOption:
            self._sync, self._async, self._lent = before
            raise

    def lend(self, client: Any) -> None:
        """A worker's, for tasks that are bound to none: until they are bound, or until another
        worker includes them."""
        if client is not None and (self.any is None or self._lent):
            self.bind(client)
            self._lent = True

    def publish(self, task: str, verb: str, *args: Any, **options: Any) -> Any:
        """Calls ``verb`` of the client, and waits for it."""
        if options.get("connection") is None and blocks_a_loop():
            raise InvalidCall(
                f"{task}.{verb}() would block the event loop: write await {task}.a{verb}()"
            )
        client = self._sync_client(task, verb, args, options)
        return getattr(client, verb)(*args, **options)

    async def apublish(self, task: str, verb: str, *args: Any, **options: Any) -> Any:
        """The same for asyncio."""
        client = self._async_client(task, verb, args, options)
        return await getattr(client, verb)(*args, **options)

    def _sync_client(self, task: str, verb: str, args: Any, options: Any) -> Any:
        if self._sync is not None:
            return _routed(self._sync, args, options)
        worker = running.get()
        client = _routed(self._async, args, options) or (worker and worker.client)
        if client is None:
            raise InvalidCall(_unbound(task))
        if options.get("connection") is not None:
            return twin(Queue, client)
        if worker is not None and (own := worker.for_place(client)) is not None:
            return _FromThread(own, worker.loop)
        raise InvalidCall(
            f"{task} is bound to an AsyncQueue: write await {task}.a{verb}(), or bind a Queue too"
        )

    def _async_client(self, task: str, verb: str, args: Any, options: Any) -> AsyncQueue:
        worker = running.get()
        bound = _routed(self.any, args, options)
        if worker is not None and worker.loop is asyncio.get_running_loop():
            own = worker.client if bound is None else worker.for_place(bound)
            if own is not None:
                return own
        if self._async is not None:
            found: AsyncQueue = _routed(self._async, args, options)
            return found
        if bound is None:
            raise InvalidCall(_unbound(task))
        if options.get("connection") is not None:
            return twin(AsyncQueue, bound)
        raise InvalidCall(
            f"{task} is bound to a {type(bound).__name__}: write {task}.{verb}(), or bind an "
            "AsyncQueue too"
        )


def _sample(client: Any) -> Any:
    return next(iter(client.values())) if isinstance(client, Shards) else client


def _routed(client: Any, args: Any, options: Any) -> Any:
    """The one client of shards that the call belongs to."""
    if not isinstance(client, Shards):
        return client
    if isinstance(args[0], list):  # publish_many
        return client.for_all(args[0])
    return client.for_channel(options.get("channel", "default"))


class _FromThread:
    """A worker's client for a handler in a thread: the event loop works, the thread waits."""

    def __init__(self, client: AsyncQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def publish(self, *args: Any, **options: Any) -> PublishedMessage[Any]:
        waiting: Any = self
        published = self._wait(self._client.publish(*args, **options))
        return PublishedMessage.of(published, waiting)

    def publish_many(self, *args: Any, **options: Any) -> list[Published]:
        return self._wait(self._client.publish_many(*args, **options))

    def wait(self, *args: Any) -> MessageEnd:
        return self._wait(self._client.wait(*args))

    def result(self, *args: Any, **options: Any) -> Any:
        return self._wait(self._client.result(*args, **options))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _place(client: Any) -> tuple[str, str, str]:
    return *client._address.place, client.name


def twin(kind: type[C], client: Any) -> C:
    """The same queue for the other world, sync or asyncio: for calls on the caller's connection,
    or to be opened beside the client. It connects when it is first used without a connection."""
    address, most = client._address, client.database.options.max_payload
    return kind(address.url, schema=address.schema, name=client.name, max_payload=most)


def _unbound(task: str) -> str:
    return (
        f"{task} has no client to publish through yet: bind its tasks with tasks.bind(queue), or "
        f"write {task}.using(client=queue)"
    )
