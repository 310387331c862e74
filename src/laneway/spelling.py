"""Did you mean: the one place that guesses which name was meant, and says so."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter
from typing import Any, TypeVar, cast

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

# fmt: off
# What other queues, drivers and people call an option of ours; the first that there is counts.
_OPTIONS = {
    "queue": ("queues", "name"), "queues": ("queue", "name"), "name": ("kind",),
    "coalesce": ("group_commit",), "pool": ("pool_size",), "dsn": ("url",),
    "database_url": ("url",), "uri": ("url",),
    "tenant": ("channel",), "tenant_id": ("channel",), "group": ("channel",),
    "data": ("payload",), "body": ("payload",), "conn": ("connection",),
    "tx": ("connection",), "transaction": ("connection",), "session": ("connection",),
    "retries": ("retry", "attempts", "max_attempts"),
    "max_retries": ("retry", "attempts", "max_attempts"),
    "max_attempts": ("attempts", "retry"), "attempts": ("max_attempts", "retry"),
    "tries": ("retry", "max_attempts"), "max_tries": ("retry", "max_attempts"),
    "retry_in": ("delay",), "countdown": ("delay",), "defer_by": ("delay",), "wait": ("delay",),
    "seconds": ("delay", "every", "retry_after"), "eta": ("at",), "run_at": ("at",),
    "scheduled_at": ("at",), "scheduled_for": ("at",), "when": ("at",), "defer_until": ("at",),
    "expires": ("expires_in",), "ttl": ("expires_in",),
    "time_limit": ("timeout",), "job_timeout": ("timeout",),
    "dedup_key": ("key",), "unique_key": ("key",), "idempotency_key": ("key",),
    "job_id": ("key",), "task_id": ("key",), "unique": ("key",),
    "threads": ("concurrency",), "workers": ("concurrency",), "max_workers": ("concurrency",),
    "max_jobs": ("concurrency",), "prefetch": ("concurrency",), "conc": ("concurrency",),
    "max": ("limit", "max_delay"), "batch_size": ("size", "limit"), "max_size": ("size",),
    "count": ("limit",), "n": ("limit",), "max_messages": ("limit",),
    "crontab": ("cron",), "interval": ("every",), "delay": ("every", "initial"),
    "tz": ("zone",), "timezone": ("zone",), "time_zone": ("zone",),
    "depends_on": ("after",), "parents": ("after",),
    "base": ("factor",), "multiplier": ("factor",), "maximum": ("max_delay", "max"),
    "minimum": ("min",), "start": ("initial",),
    "rps": ("rate",), "rate_limit": ("rate",), "per_second": ("rate",),
    "ssl": ("sslmode",), "lease": ("length",), "reason": ("error",),
}
# What they call a method or an attribute.
_ATTRIBUTES = {
    "enqueue": ("publish",), "send": ("publish",), "put": ("publish",), "push": ("publish",),
    "submit": ("publish",), "delay": ("publish",), "defer": ("publish",),
    "enqueue_async": ("apublish",), "adelay": ("apublish",), "kiq": ("apublish", "publish"),
    "apply_async": ("using",), "send_with_options": ("using",), "options": ("using",),
    "configure": ("using",), "bulk_publish": ("publish_many",), "send_batch": ("publish_many",),
    "enqueue_many": ("publish_many",), "receive": ("claim",), "dequeue": ("claim",),
    "get": ("claim",), "pop": ("claim",), "fetch": ("claim",), "poll": ("claim",),
    "consume": ("claim",), "ack": ("complete",), "acknowledge": ("complete",),
    "done": ("complete",), "finish": ("complete",), "nack": ("defer",), "reject": ("fail",),
    "retry": ("defer", "redrive"), "requeue": ("defer", "redrive"), "release": ("give_back",),
    "heartbeat": ("extend",), "touch": ("extend",), "body": ("payload",), "data": ("payload",),
    "content": ("payload",), "migrate": ("install",), "create_tables": ("install",),
    "init": ("install",), "setup": ("install",), "connect": ("install",),
    "disconnect": ("close",), "start": ("run",), "work": ("run",), "run_forever": ("run",),
    "listen": ("events", "run"), "shutdown": ("stop",), "job": ("task",), "actor": ("task",),
    "register": ("handler",), "cron": ("schedule",), "add_job": ("schedule",),
    "include_router": ("include",), "exception_handler": ("on_error",),
    "on_failure": ("on_error",), "on_startup": ("on_start",), "on_shutdown": ("on_stop",),
    "dlq": ("dead_letters",), "dead_letter": ("dead_letters",), "failed": ("dead_letters",),
}
# What they call a command.
_COMMANDS = {
    "enqueue": ("publish",), "send": ("publish",), "put": ("publish",), "push": ("publish",),
    "add": ("publish", "subscribe"), "run": ("worker",), "start": ("worker",), "serve": ("worker",),
    "work": ("worker",), "consume": ("worker",), "status": ("stats",), "info": ("stats",),
    "queues": ("stats",), "count": ("stats",), "ps": ("workers",), "retry": ("redrive",),
    "requeue": ("redrive",), "dlq": ("dead",), "failed": ("dead",), "dead-letters": ("dead",),
    "list": ("messages",), "ls": ("list", "messages"), "jobs": ("messages",),
    "tasks": ("messages",), "migrate": ("install",), "init": ("install",), "setup": ("install",),
    "logs": ("tail",), "log": ("tail",), "monitor": ("top",), "watch": ("top",),
    "web": ("dashboard",), "ui": ("dashboard",), "console": ("dashboard",), "inspect": ("show",),
    "get": ("show",), "delete": ("discard", "remove", "cancel"),
    "rm": ("remove", "discard", "cancel"),
    "purge": ("discard", "dead"), "check": ("doctor",), "health": ("doctor",),
    "metrics": ("exporter",), "benchmark": ("bench",), "postgres": ("postgresql",),
    "mysql": ("mariadb",), "set": ("limit",), "stop": ("pause",),
}
# fmt: on


def nearest(name: object, known: Iterable[str], similar: float = 0.6) -> str | None:
    """The known name that is most like this one; None if none is ``similar`` to it."""
    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(str(name).lower(), by_lower, 1, similar)
    return by_lower[found[0]] if found else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """``did you mean 'x'?``, or which names there are."""
    names = list(known)
    if near := nearest(name, names):
        return f"did you mean {near!r}?"
    return f"there are {', '.join(names)}" if names else "there is none"


def meant_option(name: str, known: Iterable[str]) -> str | None:
    names = list(known)
    return _translated(name, _OPTIONS, names) or nearest(name, names)


def meant_command(name: str, known: Iterable[str]) -> str | None:
    names = list(known)
    return _translated(name, _COMMANDS, names) or nearest(name, names)


def option_hint(name: str, known: Iterable[str]) -> str:
    """What to write instead of an option that does not exist."""
    names = list(known)
    near = meant_option(name, names)
    return f"write {near}=" if near else f"it takes {', '.join(names) or 'no options'}"


def _translated(name: str, words: dict[str, tuple[str, ...]], known: list[str]) -> str | None:
    return next((ours for ours in words.get(name.lower(), ()) if ours in known), None)


def explains_mistakes(kind: C) -> C:
    """For a class: a call with an option that does not exist is answered with the right one, and
    so is an attribute under the name that another library gives it. Python's own error names only
    what is wrong.

    Of a dataclass it is the constructor, of others the public methods; other constructors that
    people call have ``explains_call``.
    """
    if is_dataclass(kind):
        setattr(kind, "__init__", explains_call(vars(kind)["__init__"]))  # noqa: B010
        return kind
    for name, value in list(vars(kind).items()):
        if inspect.isfunction(value) and not name.startswith("_") and not _takes_all(value):
            setattr(kind, name, explains_call(value))
    if not hasattr(kind, "__getattr__"):
        kind.__getattr__ = _no_attribute  # type: ignore[attr-defined]
    return kind


def _takes_all(function: Callable[..., Any]) -> bool:
    kinds = {each.kind for each in inspect.signature(function).parameters.values()}
    return kinds >= {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}


def _no_attribute(self: object, name: str) -> Any:
    text = f"{type(self).__name__!r} object has no attribute {name!r}"
    if not name.startswith("_"):
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        if near := _translated(name, _ATTRIBUTES, known) or nearest(name, known):
            raise AttributeError(f"{text}: did you mean {near!r}?")
    raise AttributeError(text)


def explains_call(function: F) -> F:
    """For a method: our words for a call that does not fit its signature. An error from inside of
    the function has a second frame, and stays what it is."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise _sentence(function, args, kwargs, error) from None

    @wraps(function)
    async def async_call(*args: Any, **kwargs: Any) -> Any:
        try:
            work = function(*args, **kwargs)
        except TypeError as error:
            raise _sentence(function, args, kwargs, error) from None
        return await work

    return cast(F, async_call if inspect.iscoroutinefunction(function) else call)


def _sentence(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError
) -> TypeError:
    called = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
    parameters = list(inspect.signature(function).parameters.values())[1:]
    names = [each.name for each in parameters if each.kind is not Parameter.POSITIONAL_ONLY]
    placed = [each for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
    given = args[1:]
    for name in kwargs:
        if name not in names:
            others = [one for one in names if one not in kwargs]
            return TypeError(f"{called}() has no option {name}=: {option_hint(name, others)}")
        if name in [each.name for each in placed[: len(given)]]:
            others = [one for one in names if one != name]
            near = meant_option(name, others)
            hint = f": did you mean {near}=?" if near else ""
            return TypeError(f"{called}() got {name} twice, by position and by name{hint}")
    if len(given) > len(placed):
        return TypeError(f"{called}() {_places([each.name for each in placed], names)}")
    missing = [
        each.name
        for each in parameters
        if each.default is Parameter.empty
        and each.name not in kwargs
        and each not in placed[: len(given)]
    ]
    return TypeError(f"{called}() needs {' and '.join(missing)}") if missing else error


def _places(placed: list[str], names: list[str]) -> str:
    """How to pass what was passed by position, and was one too many."""
    by_name = ", ".join(f"{one}=" for one in names if one not in placed)
    if not placed:
        return f"takes its options by name: {by_name}" if by_name else "takes no arguments"
    rest = f", and the others by name: {by_name}" if by_name else ", and nothing else"
    return f"takes {' and '.join(placed)} by position{rest}"
