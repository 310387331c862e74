"""Handlers: which function takes which kind, and how."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

from penstock.convert import Unresolved
from penstock.errors import InvalidOption, shown
from penstock.names import check_kind
from penstock.retry import Exponential, Retry

from .binding import Binding, bind

Function = Callable[..., Any]
Run = Literal["async", "thread", "process"]
Ack = Literal["retry", "reject", "first", "manual"]

DEFAULT_RETRY = Exponential()


@dataclass(frozen=True, slots=True)
class Handler:
    """A function and how to treat it."""

    name: str
    function: Function
    run: Run
    ack: Ack
    retry: Retry
    timeout: float | None
    binding: Binding


def make_handler(
    function: Function,
    retry: Retry | None,
    timeout: timedelta | float | None,
    ack: Ack,
    run: Run | None,
) -> Handler:
    name = f"{function.__module__}.{function.__qualname__}"
    is_async = inspect.iscoroutinefunction(function)
    if run is None:
        run = "async" if is_async else "thread"
    _check(name, run, ack, is_async)
    binding = bind(function, name)
    if binding.transaction is not None and (run == "process" or ack in ("first", "manual")):
        raise InvalidOption(
            f"{name} takes a transaction, which run={run!r} and ack={ack!r} cannot have"
        )
    if retry is not None and (isinstance(retry, type) or not hasattr(retry, "delay")):
        raise InvalidOption(
            f"the retry of {name} is {shown(retry)}: give a strategy, such as Constant(every=5)"
        )
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if seconds is not None and seconds <= 0:
        raise InvalidOption(f"the timeout of {name} is {timeout}: it must be above zero")
    return Handler(name, function, run, ack, retry or DEFAULT_RETRY, seconds, binding)


def check_payload(handler: Handler) -> None:
    """Before anything is claimed: what a payload can never be makes a dead letter of each."""
    try:
        handler.binding.check_payload(handler.name)
    except Unresolved as error:
        raise InvalidOption(f"handler {handler.name}: {error}") from error


def _check(name: str, run: str, ack: str, is_async: bool) -> None:
    if run not in get_args(Run):
        raise InvalidOption(f"run is {run!r}: use one of {', '.join(get_args(Run))}")
    if ack not in get_args(Ack):
        raise InvalidOption(f"ack is {ack!r}: use one of {', '.join(get_args(Ack))}")
    if run == "process" and "<" in name:
        raise InvalidOption(f"{name} cannot be found by its name from another process: move it out")
    if is_async != (run == "async"):
        kind = "async" if is_async else "plain"
        raise InvalidOption(f"{name} is a {kind} function: it cannot run as {run!r}")
    if run == "process" and ack == "manual":
        raise InvalidOption(f"{name} runs in a process of its own, where it cannot settle by hand")


class Handlers:
    """By kind, with one for all others if it was given."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Handler] = {}
        self._default: Handler | None = None

    def add(self, kind: str | None, handler: Handler) -> None:
        if kind is None:
            if self._default is not None:
                raise InvalidOption(f"two default handlers: {self._default.name}, {handler.name}")
            self._default = handler
            return
        kind = check_kind(kind)
        if kind in self._by_kind:
            known = self._by_kind[kind].name
            raise InvalidOption(f"two handlers for kind {kind!r}: {known} and {handler.name}")
        self._by_kind[kind] = handler

    def find(self, kind: str) -> Handler | None:
        return self._by_kind.get(kind, self._default)

    def all(self) -> list[Handler]:
        return [*self._by_kind.values(), *([self._default] if self._default else [])]

    def kinds(self) -> list[str]:
        return sorted(self._by_kind)
