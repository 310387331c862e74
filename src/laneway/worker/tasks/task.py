"""A task: a function whose calls are published as messages, and handled by workers."""

import functools
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, cast, overload

from laneway.client.aio.publish import AsyncPublishedMessage
from laneway.client.aio.queue import AsyncQueue
from laneway.client.shared.draft import TaskTarget
from laneway.client.sync.publish import PublishedMessage
from laneway.client.sync.queue import Queue
from laneway.errors import InvalidCall, InvalidOption, shown
from laneway.model import NewMessage, Published
from laneway.spelling import did_you_mean, explains_mistakes
from laneway.worker.binding import Binding
from laneway.worker.handlers import Handler
from laneway.worker.outcomes import Defer, Fail, Throttled
from laneway.worker.parameters import CarriedParameters

from .clients import PublishOptions, TaskClients, merged, resolved

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")
A = TypeVar("A")
Outcome = Defer | Fail | Throttled
"""Returned in place of a result: a caller that waits never gets one of these."""

_FIXED = ("queue", "channel", "priority", "max_attempts")


@explains_mistakes
class TaskView(TaskTarget[P], Generic[P, R]):
    """A task with options for the calls that are published through it."""

    def __init__(
        self,
        kind: str,
        binding: Binding,
        clients: TaskClients,
        options: Mapping[str, Any],
        connection: object = None,
    ) -> None:
        self._kind = kind
        self._binding = binding
        self._clients = clients
        self._options = options
        self._connection = connection

    @property
    def kind(self) -> str:
        return self._kind

    @property
    def queue(self) -> str | None:
        return self._options.get("queue")

    @property
    def parameters(self) -> CarriedParameters:
        """What its messages carry."""
        return self._binding.parameters

    @property
    def fixed_options(self) -> dict[str, str | int]:
        """Those options that are plain values and the same for every call."""
        found = {name: self._options.get(name) for name in _FIXED}
        return {name: value for name, value in found.items() if isinstance(value, str | int)}

    @property
    def replaces(self) -> bool:
        """Whether its calls replace waiting ones with the same key."""
        return bool(self._options.get("on_duplicate", "keep") != "keep")

    @property
    def client(self) -> Any:
        """What it publishes through; None before it is bound."""
        return self._clients.any

    @property
    def clients(self) -> list[Queue | AsyncQueue]:
        """Those that were chosen for it."""
        return self._clients.queues()

    @overload
    def publish(
        self: "TaskView[P, Awaitable[T | Outcome]]", *args: P.args, **kwargs: P.kwargs
    ) -> PublishedMessage[T]: ...
    @overload
    def publish(
        self: "TaskView[P, T | Outcome]", *args: P.args, **kwargs: P.kwargs
    ) -> PublishedMessage[T]: ...
    def publish(self, *args: P.args, **kwargs: P.kwargs) -> PublishedMessage[Any]:
        """Publishes a message that calls the function with these arguments, and returns its id and
        a way to wait for what the function returns.

        They are checked first: InvalidCall if they do not fit the signature, InvalidPayload for a
        value that is no JSON. Raises what ``queue.publish`` raises.

        >>> send_receipt.publish(Order(9182), copy=True)
        """
        payload, options = self._call(args, kwargs)
        published: PublishedMessage[Any] = self._clients.publish(
            self._kind, "publish", payload, connection=self._connection, **options
        )
        return self._returning(published)

    @overload
    async def apublish(
        self: "TaskView[P, Awaitable[T | Outcome]]", *args: P.args, **kwargs: P.kwargs
    ) -> AsyncPublishedMessage[T]: ...
    @overload
    async def apublish(
        self: "TaskView[P, T | Outcome]", *args: P.args, **kwargs: P.kwargs
    ) -> AsyncPublishedMessage[T]: ...
    async def apublish(self, *args: P.args, **kwargs: P.kwargs) -> AsyncPublishedMessage[Any]:
        """The same for asyncio.

        >>> await send_receipt.apublish(Order(9182))
        """
        payload, options = self._call(args, kwargs)
        published: AsyncPublishedMessage[Any] = await self._clients.apublish(
            self._kind, "publish", payload, connection=self._connection, **options
        )
        return self._returning(published)

    def message(self, *args: P.args, **kwargs: P.kwargs) -> NewMessage:
        """The checked call as a message: for ``publish_many``, schedules and topics.

        >>> queue.publish_many([send_receipt.message(order) for order in orders])
        """
        payload, options = self._call(args, kwargs)
        return NewMessage(payload, **options)

    def publish_many(self, messages: Iterable[NewMessage]) -> list[Published]:
        """Publishes many calls or none, made by ``message``.

        >>> send_receipt.publish_many(send_receipt.message(order) for order in orders)
        """
        result: list[Published] = self._clients.publish(
            self._kind, "publish_many", self._checked(messages), connection=self._connection
        )
        return result

    async def apublish_many(self, messages: Iterable[NewMessage]) -> list[Published]:
        """The same for asyncio."""
        result: list[Published] = await self._clients.apublish(
            self._kind, "publish_many", self._checked(messages), connection=self._connection
        )
        return result

    def using(
        self, *, client: Any = None, connection: object = None, **options: Unpack[PublishOptions]
    ) -> "TaskView[P, R]":
        """The same task with other options for publishing. The messages belong to the
        transaction of ``connection``, which is the caller's own; ``client`` is another
        Queue or AsyncQueue.

        >>> send_receipt.using(channel="tenant-42", delay=5).publish(Order(9182))
        """
        clients = self._clients
        if client is not None:
            clients = TaskClients()
            clients.bind(client)
        if connection is None:
            connection = self._connection
        return TaskView(
            self._kind,
            self._binding,
            clients,
            merged(self._options, options, ("client", "connection")),
            connection,
        )

    def _returning(self, published: A) -> A:
        """A double of a client answers with what it likes."""
        if isinstance(published, PublishedMessage | AsyncPublishedMessage):
            published._returned = self._binding.returned
        return published

    def _call(self, args: Any, kwargs: Any) -> tuple[bytes, dict[str, Any]]:
        payload, content_type = self._binding.parameters.write(self._given(args, kwargs))
        options = resolved(self._options, args, kwargs)
        return payload, {**options, "kind": self._kind, "content_type": content_type}

    def _given(self, args: Any, kwargs: Any) -> dict[str, object]:
        """The arguments by name."""
        quick = self._binding.quick(args, kwargs)
        if quick is not None:
            return quick
        try:
            bound = self._binding.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidCall(f"{self._kind}: {self._mistake(kwargs) or error}") from None
        given: dict[str, Any] = dict(bound.arguments)
        for each in self._binding.signature.parameters.values():
            if each.kind is each.VAR_KEYWORD:
                given |= given.pop(each.name, {})
        return given

    def _mistake(self, kwargs: dict[str, Any]) -> str | None:
        """What to do about a name that the function does not have."""
        names = self._binding.by_name
        if self._binding.parameters.rest is not None:  # **kwargs takes any name
            return None
        for name in kwargs.keys() - names:
            if name in PublishOptions.__annotations__:
                return f"it has no parameter {name!r}: options go into .using({name}=…)"
            return f"it has no parameter {name!r}: {did_you_mean(name, sorted(names))}"
        return None

    def _checked(self, messages: Iterable[NewMessage]) -> list[NewMessage]:
        found = list(messages)
        for message in found:
            if not isinstance(message, NewMessage) or message.kind != self._kind:
                raise InvalidCall(
                    f"{shown(message)} is not a call of {self._kind}: make one with "
                    f"{self._kind}.message(…)"
                )
        return found

    def __repr__(self) -> str:
        options = "".join(f" {name}={shown(value)}" for name, value in self._options.items())
        return f"<{type(self).__name__} {self._kind}{options}>"


class _OfFunction:
    """What tasks with a function of their own share."""

    __name__: str
    __qualname__: str

    def _wrap(self, kind: str, function: Callable[..., Any], handler: Handler | None) -> None:
        self.handler = handler
        """How workers run it; None if it was only declared here."""
        self._called = kind
        self._function = function
        functools.update_wrapper(cast(Callable[..., Any], self), function)

    def __get__(self, owner: object, kind: type | None = None) -> Self:
        if owner is not None:
            raise InvalidOption(f"{self._called} is a method: only functions can be tasks")
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """By its place: its client cannot be sent to another process."""
        module, name = self._function.__module__, self._function.__qualname__
        try:
            found: object = functools.reduce(getattr, name.split("."), sys.modules.get(module))
            if found is self:
                return _import_task, (module, name)
        except AttributeError:
            pass
        raise InvalidOption(f"the task {self._called} is not at module level: it cannot be sent")


class Task(_OfFunction, TaskView[P, R]):
    """A function that can be published: still the function when it is called.

    >>> @worker.task
    ... def send_receipt(order: Order, copy: bool = False) -> None: ...
    >>> send_receipt.publish(Order(9182))       # a worker calls it
    >>> send_receipt(Order(9182))               # calls it here and now
    """

    def __init__(
        self,
        kind: str,
        binding: Binding,
        clients: TaskClients,
        options: Mapping[str, Any],
        function: Callable[P, R],
        handler: Handler | None,
    ) -> None:
        TaskView.__init__(self, kind, binding, clients, options)
        self._wrap(kind, function, handler)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._function(*args, **kwargs)
        return result


class BatchTask(_OfFunction, TaskView[[T], Any], Generic[T, P, R]):
    """A function of many payloads; calls are published one by one.

    >>> @worker.batch_task(size=500, wait=0.2)
    ... def count_clicks(clicks: list[Click]) -> None: ...
    >>> count_clicks.publish(Click("/"))
    """

    def __init__(
        self,
        kind: str,
        binding: Binding,
        clients: TaskClients,
        options: Mapping[str, Any],
        function: Callable[Concatenate[list[T], P], R],
        handler: Handler | None,
    ) -> None:
        TaskView.__init__(self, kind, binding, clients, options)
        self._wrap(kind, function, handler)

    def __call__(self, payloads: list[T], *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._function(payloads, *args, **kwargs)
        return result


def _import_task(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), import_module(module))
