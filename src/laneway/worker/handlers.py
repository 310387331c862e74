"""Handlers: which function takes which kind of message, with which arguments and options."""

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

from laneway.contract import Ability
from laneway.convert import Unresolved
from laneway.durations import Duration, check_duration
from laneway.errors import HandlerFailed, InvalidOption, InvalidTime, shown
from laneway.names import check_kind
from laneway.payload import check_keep_result
from laneway.retry import Exponential, Retry

from .binding import BatchOptions, Binding, bind, bind_batch

Function = Callable[..., Any]
C = TypeVar("C", bound=Callable[..., Any])
Run = Literal["async", "thread", "process"]
Ack = Literal["retry", "reject", "first", "manual"]

DEFAULT_RETRY = Exponential()


@dataclass(frozen=True, slots=True)
class Handler:
    """A function and how to run it. ``queue`` is where its messages are published to; None is the
    client's own."""

    name: str
    function: Function
    run: Run
    ack: Ack
    retry: Retry
    timeout: float | None
    binding: Binding
    queue: str | None = None
    keep_result: timedelta | None = None
    batch: BatchOptions | None = None
    """Of a function that takes many messages at once."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A task's handler by its place: pickled by value, its function would take its module's
        globals along, clients and all."""
        module, name = self.function.__module__, self.function.__qualname__
        if module != "__main__" and handler_in(sys.modules.get(module), name) is self:
            return _import_handler, (module, name)
        values = [getattr(self, field) for field in self.__dataclass_fields__]
        return Handler, tuple(values)


def handler_in(module: object, name: str) -> Handler | None:
    """That of the task ``name`` of a module; None if there is no such task."""
    try:
        handler = getattr(reduce(getattr, name.split("."), module), "handler", None)
    except AttributeError:
        return None
    return handler if isinstance(handler, Handler) else None


def _import_handler(module: str, name: str) -> Handler:
    handler = handler_in(import_module(module), name)
    if handler is None:
        raise InvalidOption(f"there is no task {name!r} in {module} any more")
    return handler


def make_handler(
    function: Function,
    retry: Retry | int | None,
    timeout: Duration | None,
    ack: Ack,
    run: Run | None,
    queue: str | None = None,
    keep_result: Duration | None = None,
    batch: BatchOptions | None = None,
) -> Handler:
    checked_function("handler", function)
    if isinstance(function, staticmethod):
        function = function.__func__  # which says whether it is async
    if not hasattr(function, "__qualname__"):
        raise InvalidOption(f"the handler is {shown(function)}: wrap it in a function, with def")
    name = f"{function.__module__}.{function.__qualname__}"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidOption(f"{name} is a generator and would never run: it must not yield")
    _check_no_method(function, name)
    is_async = inspect.iscoroutinefunction(function)
    if run is None:
        run = "async" if is_async else "thread"
    _check(name, run, ack, is_async)
    if batch is None:
        binding = bind(function, name, is_async)
    elif run == "process":
        raise InvalidOption(f"{name} takes many messages at once: it cannot run as 'process'")
    else:
        binding, messages = bind_batch(function, name, is_async)
        batch = replace(batch, messages=messages)
    if binding.transaction is not None and (run == "process" or ack in ("first", "manual")):
        raise InvalidOption(
            f"{name} takes a transaction, which run={run!r} and ack={ack!r} cannot have"
        )
    if retry is not None and ack in ("reject", "first"):
        raise InvalidOption(
            f"{name} has a retry that is never asked: with ack={ack!r} nothing is retried; leave "
            "out one of the two"
        )
    if keep_result is not None and ack == "first":
        raise InvalidOption(
            f"{name} has a keep_result: with ack='first' its message ends before it returns"
        )
    seconds = None if timeout is None else _timeout(name, timeout)
    keep = None if keep_result is None else check_keep_result(keep_result)
    chosen = DEFAULT_RETRY if retry is None else _strategy(name, retry)
    return Handler(name, function, run, ack, chosen, seconds, binding, queue, keep, batch)


def _check_no_method(function: Function, name: str) -> None:
    """In the body of a class there is no object yet, and the payload would be its ``self``."""
    scope = function.__qualname__.rpartition(".")[0]
    first = next(iter(inspect.signature(function).parameters), None)
    if scope and not scope.endswith("<locals>") and first in ("self", "cls"):
        raise InvalidOption(
            f"{name} is a method, and nobody would pass its {first!r}: write a function, or "
            "register the method of an object"
        )


def _strategy(name: str, retry: Any) -> Retry:
    """A number is how often it is tried again, with the default's growing delays."""
    if isinstance(retry, int) and not isinstance(retry, bool) and retry >= 0:
        return Exponential(attempts=retry + 1)
    if isinstance(retry, type) or not hasattr(retry, "delay"):
        raise InvalidOption(
            f"the retry of {name} is {shown(retry)}: say how often to try again, or give a "
            "strategy such as Constant(every=5)"
        )
    strategy: Retry = retry
    return strategy


def _timeout(name: str, timeout: Duration) -> float:
    seconds = check_duration(f"the timeout of {name}", timeout).total_seconds()
    if not seconds:
        raise InvalidTime(f"the timeout of {name} is 0: it must be above zero")
    return seconds


def checked_function(what: str, function: C) -> C:
    """Refuses what a decorator cannot take: a class, a text, the result of a call."""
    if isinstance(function, type):
        raise InvalidOption(f"{what}: {function.__qualname__} is a class; give a function")
    if not callable(function):
        raise InvalidOption(f"{what}: {shown(function)} is not a function")
    return function


@asynccontextmanager
async def timing_out(handler: Handler) -> AsyncIterator[None]:
    """asyncio's own error has no text."""
    limit = asyncio.timeout(handler.timeout)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired() or error.args:
            raise
        raise TimeoutError(
            f"{handler.name} took longer than its timeout of {handler.timeout:g} s"
        ) from error.__cause__


def check_result(name: str, result: object) -> None:
    """Nobody would await it, and the work would not be done."""
    if inspect.iscoroutine(result):
        result.close()
        raise HandlerFailed(
            f"{name} returned a coroutine: await it there, or make the function async (a decorator "
            "may hide that it is)"
        )


def kind_of(handler: Handler) -> str:
    """The function's name, for a handler that was registered without a kind."""
    name = handler.function.__name__
    if name == "<lambda>":
        raise InvalidOption('a lambda has no name to use as the kind: use worker.handler("kind")')
    return name


def check_payload(handler: Handler) -> None:
    """Before anything is claimed: otherwise every message of the handler became a dead letter."""
    try:
        handler.binding.parameters.check()
    except Unresolved as error:
        raise InvalidOption(f"handler {handler.name}: {error}") from error


def _check(name: str, run: str, ack: str, is_async: bool) -> None:
    if run not in get_args(Run):
        raise InvalidOption(f"run is {run!r}: use one of {', '.join(get_args(Run))}")
    if ack not in get_args(Ack):
        raise InvalidOption(f"ack is {ack!r}: use one of {', '.join(get_args(Ack))}")
    if run == "process" and "<" in name:
        raise InvalidOption(
            f"{name} cannot be imported in another process: define it at module level"
        )
    if is_async != (run == "async"):
        kind = "async" if is_async else "ordinary"
        raise InvalidOption(f"{name} is an {kind} function: it cannot run as {run!r}")
    if run == "process" and ack == "manual":
        raise InvalidOption(
            f"{name} runs in a process of its own: ack='manual' does not work there"
        )


class Handlers:
    """By kind, and perhaps one for all other kinds."""

    def __init__(self) -> None:
        self.by_kind: dict[str, Handler] = {}
        self.default: Handler | None = None

    def add(self, kind: str | None, handler: Handler) -> None:
        if kind is None:
            if self.default is not None:
                raise InvalidOption(f"two default handlers: {self.default.name} and {handler.name}")
            self.default = handler
            return
        kind = check_kind(kind)
        if kind in self.by_kind:
            known = self.by_kind[kind].name
            raise InvalidOption(
                f"two handlers for kind {kind!r}: {known} and {handler.name}; give one of them a "
                f'kind of its own, e.g. @tasks.task("{handler.function.__module__}.{kind}")'
            )
        self.by_kind[kind] = handler

    def include(self, others: Iterable["Handlers"]) -> "Handlers":
        """All of them; raises InvalidOption if two are for the same kind."""
        together = Handlers()
        for part in (self, *others):
            for kind, handler in part.by_kind.items():
                together.add(kind, handler)
            if part.default is not None:
                together.add(None, part.default)
        return together

    def find(self, kind: str) -> Handler | None:
        return self.by_kind.get(kind, self.default)

    def all(self) -> list[Handler]:
        return [*self.by_kind.values(), *([self.default] if self.default else [])]

    def kinds(self) -> list[str]:
        return sorted(self.by_kind)

    def claimed_kinds(self, lacks: Mapping[Ability, str]) -> tuple[str, ...] | None:
        """What a worker with these handlers claims; None: every kind."""
        if self.default is not None or "claims by kind" in lacks:
            return None
        return tuple(self.kinds())

    @property
    def has_default(self) -> bool:
        """Whether there is a handler for every kind."""
        return self.default is not None
