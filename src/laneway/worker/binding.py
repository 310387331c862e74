"""Which parameter of a function gets what: the message's arguments, the message, a transaction."""

import inspect
from collections import abc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from laneway.client.aio.message import AsyncMessage
from laneway.client.shared.checks import check_number
from laneway.client.shared.message_fields import MessageFields
from laneway.client.sync.message import Message
from laneway.convert import Unresolved, never_decodable
from laneway.drivers.caller.detect import kind_of_class
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption
from laneway.payload import as_published, decode, holds_arguments

from .parameters import CarriedParameters

_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Injected:
    """The type of :data:`INJECTED`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # inspect and copy ask for these
            raise AttributeError(name)
        raise InvalidOption(
            f"nobody passed a message, so it has no {name!r}: only a worker injects it; a direct "
            "call must pass one"
        )

    def __repr__(self) -> str:
        return "INJECTED"


INJECTED: Any = Injected()
"""The default of a parameter that the worker fills: ``message: Message = INJECTED``. With it, type
checkers know that callers leave the parameter out."""


@dataclass(frozen=True, slots=True)
class Binding:
    """By annotation; None where there is no such parameter. ``placed`` are passed by position, each
    with its default."""

    parameters: CarriedParameters
    message: str | None
    transaction: str | None
    transaction_type: Any
    placed: tuple[tuple[str, Any], ...]
    alone: Any
    """The annotation of the only parameter, if it is positional and has no default: the common,
    fast case."""
    signature: inspect.Signature
    """Of the arguments that a publisher gives."""
    by_position: tuple[str, ...]
    by_name: frozenset[str]
    returned: Any = Any
    """What the function says that it returns; Any also if that is nothing, because the handler may
    have completed its message with a result."""

    def arguments(
        self, source: MessageFields, message: object, transaction: object
    ) -> tuple[list[object], dict[str, object]]:
        """What to call the function with; raises DecodeError."""
        content_type = source.content_type
        if self.alone is not None and not holds_arguments(content_type):
            if self.alone is Parameter.empty:
                return [as_published(source.payload, content_type)], {}
            return [decode(source.payload, content_type, self.alone)], {}
        return self.filled(self.parameters.read(source), message, transaction)

    def quick(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, object] | None:
        """The arguments of a right call by name, ten times as fast as ``signature.bind``. None if
        that one has to look."""
        if len(args) > len(self.by_position):
            return None
        given = dict(zip(self.by_position, args, strict=False))
        if kwargs:
            if not kwargs.keys() <= self.by_name or not given.keys().isdisjoint(kwargs):
                return None
            given.update(kwargs)
        return given if self.parameters.required <= given.keys() else None

    def filled(
        self, values: dict[str, object], message: object, transaction: object
    ) -> tuple[list[object], dict[str, object]]:
        if self.message is not None:
            values[self.message] = message
        if self.transaction is not None:
            values[self.transaction] = transaction
        return [values.pop(name, default) for name, default in self.placed], values


def bind(function: Callable[..., Any], name: str, is_async: bool | None = None) -> Binding:
    """Reads the signature; raises InvalidOption for a parameter that nothing can be passed for.
    ``is_async`` is None for a function that is elsewhere, or was checked before."""
    hints = _hints(function, name)
    signature = inspect.signature(function)
    injected: dict[str, str] = {}
    local: set[str] = set()
    carried: dict[str, Parameter] = {}
    rest: Any = None
    for parameter in signature.parameters.values():
        hint = hints.get(parameter.name, Parameter.empty)
        if parameter.kind in _VARIABLE:
            if parameter.kind is Parameter.VAR_KEYWORD:
                rest = hint
            continue
        role = _role(hint)
        _check_injected(name, parameter, role)
        if role == "message" and is_async is not None:
            check_world(name, parameter.name, hint, is_async)
        if role == "transaction" and is_async is not None:
            _check_transaction(name, parameter.name, get_origin(hint) or hint, is_async)
        if role is not None and role not in injected:
            injected[role] = parameter.name
        elif role is not None:
            _check_optional(name, role, injected[role], parameter)
            local.add(parameter.name)
        elif parameter.default is not Parameter.empty and _unreadable(hint):
            local.add(parameter.name)
        else:
            carried[parameter.name] = parameter
    by_kind = {each.kind: each.name for each in signature.parameters.values()}
    empty = not carried and "message" not in injected
    if empty and (many := by_kind.get(Parameter.VAR_POSITIONAL)):
        raise InvalidOption(
            f"{name} has *{many}, which gets nothing of the payload: name the parameters, or take "
            "a list; a decorator needs functools.wraps"
        )
    parameters = CarriedParameters(
        name,
        {each: hints.get(each, Parameter.empty) for each in carried},
        frozenset(n for n, each in carried.items() if each.default is Parameter.empty),
        rest,
        frozenset(local),
        empty and Parameter.VAR_KEYWORD in by_kind,
    )
    published = _published(signature, {*injected.values(), *local})
    transaction = injected.get("transaction")
    transaction_type = hints.get(transaction) if transaction else None
    binding = Binding(
        parameters,
        injected.get("message"),
        transaction,
        get_origin(transaction_type) or transaction_type,
        _placed(signature),
        None if injected else _alone(carried, hints),
        published,
        _of_kinds(published, Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD),
        frozenset(
            _of_kinds(published, Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD),
        ),
        Any if hints.get("return", NoneType) is NoneType else hints["return"],
    )
    with suppress(Unresolved):  # it may be defined further down; the start of a run checks again
        parameters.check()
    return binding


def _alone(carried: dict[str, Parameter], hints: dict[str, Any]) -> Any:
    if len(carried) != 1:
        return None
    (only,) = carried.values()
    if only.default is not Parameter.empty or only.kind is Parameter.KEYWORD_ONLY:
        return None
    return hints.get(only.name, Parameter.empty)


def _placed(signature: inspect.Signature) -> tuple[tuple[str, Any], ...]:
    """What cannot be passed by name."""
    return tuple(
        (each.name, each.default)
        for each in signature.parameters.values()
        if each.kind is Parameter.POSITIONAL_ONLY
    )


def _of_kinds(signature: inspect.Signature, *kinds: Any) -> tuple[str, ...]:
    return tuple(each.name for each in signature.parameters.values() if each.kind in kinds)


def _published(signature: inspect.Signature, without: set[str]) -> inspect.Signature:
    kept = [each for each in signature.parameters.values() if each.name not in without]
    return signature.replace(parameters=kept)


def _check_optional(name: str, role: str, first: str, second: Parameter) -> None:
    if second.default is Parameter.empty:
        raise InvalidOption(
            f"{name} has two parameters for its {role}, {first!r} and {second.name!r}: give the "
            "second a default"
        )


def _check_injected(name: str, parameter: Parameter, role: str | None) -> None:
    if parameter.default is INJECTED and role is None:
        raise InvalidOption(
            f"{name} has {parameter.name}=INJECTED, and its annotation does not say what to "
            f"inject: write {parameter.name}: Message = INJECTED, or AsyncMessage if it is async"
        )


def check_world(name: str, parameter: str, hint: Any, is_async: bool) -> None:
    """The methods of the other world's message would be coroutines that nobody awaits, or would
    not wait."""
    wrong, right = (Message, AsyncMessage) if is_async else (AsyncMessage, Message)
    if issubclass(_message_class(hint) or MessageFields, wrong):
        kind = "async" if is_async else "ordinary"
        raise InvalidOption(
            f"{name} is an {kind} function, and its {parameter!r} is annotated as "
            f"{wrong.__name__}: it gets {_ARTICLES[right]} {right.__name__}, so annotate it as "
            "that"
        )


def _check_transaction(name: str, parameter: str, wanted: type, is_async: bool) -> None:
    found = kind_of_class(wanted) or ""
    if found.startswith("async ") != is_async:
        kind, other = ("async", "an async") if is_async else ("ordinary", "a sync")
        raise InvalidOption(
            f"{name} is an {kind} function, and its {parameter!r} is annotated as "
            f"{wanted.__qualname__}: annotate it as {other} connection or session"
        )


_ARTICLES = {Message: "a", AsyncMessage: "an"}


def _message_class(hint: Any) -> type[MessageFields] | None:
    """Also of ``Message | None``: there always is one."""
    for one in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        found = get_origin(one) or one
        if isinstance(found, type) and issubclass(found, MessageFields):
            return found
    return None


def _role(hint: Any) -> str | None:
    if _message_class(hint):
        return "message"
    hint = get_origin(hint) or hint  # a psycopg.Connection[Any] is a Connection
    return "transaction" if isinstance(hint, type) and kind_of_class(hint) else None


def _unreadable(hint: Any) -> bool:
    if hint is Parameter.empty:
        return False
    try:
        return never_decodable(hint) is not None
    except Unresolved:
        return False


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise InvalidOption(
            f"the annotations of {name} cannot be read ({error}): import what they name at run "
            "time, not only for type checkers"
        ) from error


# The signature of a function that takes many messages at once.

MOST_AT_ONCE = 10_000
_LISTS = (list, abc.Sequence, abc.Iterable, abc.Collection)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Up to ``size`` messages, gathered for ``wait`` seconds after the first; ``messages`` is the
    parameter that gets them."""

    size: int
    wait: float
    messages: str | None = None


def check_batch(size: int, wait: Duration) -> BatchOptions:
    return BatchOptions(
        check_number("size", size, 1, MOST_AT_ONCE), check_duration("wait", wait).total_seconds()
    )


def bind_batch(
    function: Callable[..., Any], name: str, is_async: bool
) -> tuple[Binding, str | None]:
    """How one message is read, and the parameter for the messages; raises InvalidOption for
    anything but a list of payloads and perhaps one of messages."""
    hints = get_type_hints(function)
    first: Parameter | None = None
    messages: str | None = None
    for each in inspect.signature(function).parameters.values():
        hint = hints.get(each.name, Parameter.empty)
        of_messages = _of_messages(hint)
        _check_injected(name, each, "messages" if of_messages else None)
        if of_messages and messages is None:
            check_world(name, each.name, get_args(hint)[0], is_async)
            messages = each.name
        elif first is None:
            first = each
        elif each.default is Parameter.empty:
            raise InvalidOption(
                f"{name} takes many payloads at once: its parameters are a list of them and, if it "
                f"wants them, a list of messages; {each.name!r} is neither"
            )
    if first is None or first.kind not in (
        Parameter.POSITIONAL_ONLY,
        Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise InvalidOption(f"{name} takes many payloads at once: its first parameter is a list")
    item = _item(name, first.name, hints.get(first.name, Parameter.empty))
    parameters = CarriedParameters(name, {first.name: item}, frozenset([first.name]))
    one = Parameter(first.name, Parameter.POSITIONAL_ONLY, annotation=item)
    signature = inspect.Signature([one])
    binding = Binding(parameters, None, None, None, (), item, signature, (first.name,), frozenset())
    return binding, messages


def _of_messages(hint: Any) -> bool:
    found = get_args(hint)
    return bool(get_origin(hint) in _LISTS and found and _message_class(found[0]))


def _item(name: str, parameter: str, hint: Any) -> Any:
    if hint in (Parameter.empty, Any, *_LISTS):
        return Parameter.empty
    if get_origin(hint) not in _LISTS or len(get_args(hint)) != 1:
        raise InvalidOption(
            f"{name} takes many payloads at once: annotate {parameter!r} as a list, e.g. "
            "list[Order]"
        )
    return get_args(hint)[0]
