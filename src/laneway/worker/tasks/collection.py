"""Tasks that are declared before there is a worker or a client, or without their functions."""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar, Unpack, overload

from laneway.errors import InvalidCall, InvalidName
from laneway.names import check_kind
from laneway.worker.binding import bind

from .decorators import TaskDecorators
from .options import PublishOptions, merged
from .task import Task, TaskView

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


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
    ) -> Task[[T], NoReturn]: ...

    @overload
    def declare(
        self, kind: str, payload: Any = ..., **options: Unpack[PublishOptions]
    ) -> Task[[Any], NoReturn]: ...

    def declare(
        self, kind: Any, payload: Any = Any, **options: Unpack[PublishOptions]
    ) -> Task[..., Any]:
        """A task whose function is elsewhere, in another program or language: by its kind and the
        type of its payload, or as a decorator by a function without a body.

        >>> send_receipt = tasks.declare("send_receipt", Order, queue="emails")
        >>> send_receipt.publish(Order(9182))
        """
        chosen = merged(self._defaults, options)
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
        near = get_close_matches(str(kind), self._tasks, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self._tasks)}"
        raise InvalidName(f"there is no task of kind {kind!r}: {hint}")

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
