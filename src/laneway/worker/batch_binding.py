"""The signature of a function that takes many messages at once."""

import inspect
from collections import abc
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, get_args, get_origin, get_type_hints

from laneway.client.shared.checks import check_number
from laneway.client.shared.message_fields import MessageFields
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption

from .binding import Binding
from .parameters import CarriedParameters

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


def bind_batch(function: Callable[..., Any], name: str) -> tuple[Binding, str | None]:
    """How one message is read, and the parameter for the messages; raises InvalidOption for
    anything but a list of payloads and perhaps one of messages."""
    hints = get_type_hints(function)
    first: Parameter | None = None
    messages: str | None = None
    for each in inspect.signature(function).parameters.values():
        hint = hints.get(each.name, Parameter.empty)
        if _of_messages(hint) and messages is None:
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
    kind = get_origin(hint) in _LISTS and found and (get_origin(found[0]) or found[0])
    return isinstance(kind, type) and issubclass(kind, MessageFields)


def _item(name: str, parameter: str, hint: Any) -> Any:
    if hint in (Parameter.empty, Any, *_LISTS):
        return Parameter.empty
    if get_origin(hint) not in _LISTS or len(get_args(hint)) != 1:
        raise InvalidOption(
            f"{name} takes many payloads at once: annotate {parameter!r} as a list, e.g. "
            "list[Order]"
        )
    return get_args(hint)[0]
