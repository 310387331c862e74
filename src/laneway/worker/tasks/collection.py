"""The decorators that make tasks, and collections of tasks."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar, Unpack, overload

from laneway.durations import Duration
from laneway.errors import InvalidCall, InvalidName, InvalidOption
from laneway.names import check_kind, check_name
from laneway.retry import Retry
from laneway.spelling import did_you_mean, explains_mistakes
from laneway.worker.binding import BatchOptions, bind, check_batch
from laneway.worker.definition import ServedDatabase
from laneway.worker.handlers import Ack, Handlers, Run, kind_of, make_handler

from .clients import PublishOptions, TaskClients, merged
from .task import BatchTask, Task, TaskView

_OF_HANDLERS = ("kind", "retry", "timeout", "ack", "run")
_OF_BATCHES = (*_OF_HANDLERS, "size", "wait")

# The decorators that make tasks, for workers and for collections of tasks.

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
V = TypeVar("V", bound=TaskView[..., Any])


class TaskDecorator(Protocol):
    """What ``task`` with options returns: it makes a task of a function."""

    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class BatchTaskDecorator(Protocol):
    """What ``batch_task`` with options returns."""

    def __call__(self, function: Callable[Concatenate[list[T], P], R], /) -> BatchTask[T, P, R]: ...


@explains_mistakes
class TaskDecorators:
    """``task`` and ``batch_task``: a function is registered as a handler and can be published."""

    def __init__(self, options: PublishOptions) -> None:
        self._handlers = Handlers()
        self._clients = TaskClients()
        self._defaults = merged({}, options)
        self._tasks: dict[str, TaskView[..., Any]] = {}

    def _all_handlers(self) -> Handlers:
        return self._handlers

    def _served(self, database: ServedDatabase) -> list[str]:
        """The queues of this database that its calls are published to."""
        bound = [one for one in self._clients.queues() if database.serves(one)]
        own = [one.name for one in bound] or [database.queue.name]
        return self._queues_of_handlers(own)

    def _queues_of_handlers(self, own: list[str]) -> list[str]:
        """``own`` are those of calls that name none."""
        named = [own if one.queue is None else [one.queue] for one in self._handlers.all()]
        return [name for names in named for name in names]

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        kind: str | None = None,
        *,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        **options: Unpack[PublishOptions],
    ) -> TaskDecorator: ...

    def task(
        self,
        kind: str | Callable[..., Any] | None = None,
        *,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        **options: Unpack[PublishOptions],
    ) -> Any:
        """Makes a function a task: workers run it, ``publish`` calls it through the queue.

        The kind of its messages is the function's name, or ``kind``. ``retry``, ``timeout``,
        ``ack`` and ``run`` are those of a handler; ``queue``, ``channel``, ``key``, ``priority``,
        ``max_attempts`` and the others are how its messages are published. Workers serve the queues
        of their tasks.

        >>> @worker.task(queue="emails", retry=Exponential(attempts=8), timeout=30)
        ... def send_receipt(order: Order, copy: bool = False) -> None: ...
        >>> send_receipt.publish(Order(9182), copy=True)
        """
        make = self._maker(Task, kind, retry, timeout, ack, run, None, options)
        return make(kind) if callable(kind) else make

    @overload
    def batch_task(
        self, function: Callable[Concatenate[list[T], P], R], /
    ) -> BatchTask[T, P, R]: ...

    @overload
    def batch_task(
        self,
        kind: str | None = None,
        *,
        size: int = 100,
        wait: Duration = 0.2,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        **options: Unpack[PublishOptions],
    ) -> BatchTaskDecorator: ...

    def batch_task(
        self,
        kind: str | Callable[..., Any] | None = None,
        *,
        size: int = 100,
        wait: Duration = 0.2,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        **options: Unpack[PublishOptions],
    ) -> Any:
        """Makes a task of a function that handles many messages at once: up to ``size``, gathered
        for ``wait`` after the first.

        It gets a list of payloads and, if a parameter is annotated so, a list of messages. It
        returns None, or a list with one outcome for each: None, a Defer, a Fail, an exception, or a
        result. What it raises counts for each of them. Calls are published one by one.

        >>> @worker.batch_task(size=500, wait=0.2)
        ... def count_clicks(clicks: list[Click]) -> None: ...
        >>> count_clicks.publish(Click("/"))
        """
        batch = check_batch(size, wait)
        make = self._maker(BatchTask, kind, retry, timeout, ack, run, batch, options)
        return make(kind) if callable(kind) else make

    def _maker(
        self,
        form: Any,
        kind: str | Callable[..., Any] | None,
        retry: Retry | int | None,
        timeout: Duration | None,
        ack: Ack,
        run: Run | None,
        batch: BatchOptions | None,
        options: PublishOptions,
    ) -> Callable[[Callable[..., Any]], Any]:
        named = None if kind is None or callable(kind) else check_kind(kind)
        chosen = merged(self._defaults, options, _OF_HANDLERS if batch is None else _OF_BATCHES)
        queue = check_name("queue", chosen["queue"]) if "queue" in chosen else None

        def make(function: Callable[..., Any]) -> Any:
            keep = chosen.get("keep_result")
            handler = make_handler(function, retry, timeout, ack, run, queue, keep, batch)
            _check_signature(handler.name, function)
            called = kind_of(handler) if named is None else named
            self._handlers.add(called, handler)
            return self._keep(
                form(called, handler.binding, self._clients, chosen, function, handler)
            )

        return make

    def _keep(self, task: V) -> V:
        if task.kind in self._tasks:
            raise InvalidOption(f"two tasks of kind {task.kind!r}")
        self._clients.add(task)
        self._tasks[task.kind] = task
        return task


def _check_signature(name: str, function: Callable[..., Any]) -> None:
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.VAR_POSITIONAL:
            raise InvalidOption(
                f"{name} has *{each.name}: the arguments of a task travel by name; take a list"
            )


# Tasks that are declared before there is a worker or a client, or without their functions.


@explains_mistakes
class Tasks(TaskDecorators):
    """Tasks of a module or of an application; the options are defaults for all of them.

    Nothing connects: give a worker the collection with ``worker.include(tasks)`` or
    ``laneway worker shop.mail``, and a producer its client with ``bind``.

    >>> tasks = Tasks(queue="emails")
    >>> @tasks.task
    ... def send_receipt(order: Order) -> None: ...
    >>> tasks.bind(queue)
    >>> send_receipt.publish(Order(9182))
    """

    def __init__(self, **options: Unpack[PublishOptions]) -> None:
        super().__init__(options)

    def bind(self, *clients: Any) -> None:
        """Publishes through this Queue or AsyncQueue, or one of each, from now on.

        >>> tasks.bind(queue)
        """
        self._clients.bind(*clients)

    @overload
    def declare(self, kind: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def declare(
        self, kind: str, payload: type[T], **options: Unpack[PublishOptions]
    ) -> Task[[T], Any]: ...

    @overload
    def declare(
        self, kind: str, payload: Any = ..., **options: Unpack[PublishOptions]
    ) -> Task[[Any], Any]: ...

    def declare(
        self, kind: Any, payload: Any = Any, **options: Unpack[PublishOptions]
    ) -> Task[..., Any]:
        """A task whose function is elsewhere, in another program or language: by its kind and the
        type of its payload, or as a decorator by a function without a body. What the other function
        returns is known by the annotation of the one here, or told to ``result(Receipt)``.

        >>> send_receipt = tasks.declare("send_receipt", Order, queue="emails")
        >>> send_receipt.publish(Order(9182))
        """
        chosen = merged(self._defaults, options, ("payload",))
        name = kind.__name__ if callable(kind) else check_kind(kind)
        stub = _stub(name, kind if callable(kind) else _taking(payload))
        task: Task[..., Any] = Task(name, bind(stub, name), self._clients, chosen, stub, None)
        return self._keep(task)

    def __iter__(self) -> Iterator[TaskView[..., Any]]:
        return iter(self._tasks.values())

    def __getitem__(self, kind: str) -> TaskView[..., Any]:
        """By its kind, for those who learn it at run time only."""
        if kind in self._tasks:
            return self._tasks[kind]
        raise InvalidName(f"there is no task of kind {kind!r}: {did_you_mean(kind, self._tasks)}")

    def __len__(self) -> int:
        return len(self._tasks)


def _stub(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """With the signature of the function, but not to be called."""

    @wraps(function)
    def stub(*args: object, **kwargs: object) -> NoReturn:
        raise InvalidCall(f"{name} is only declared here: publish it, its function is elsewhere")

    return stub


def _taking(payload: Any) -> Callable[..., Any]:
    def function(payload: Any, /) -> None: ...

    function.__annotations__ = {"payload": payload}
    return function
