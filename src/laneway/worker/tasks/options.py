"""How the messages of a task are published: options of the task, of its collection, of one call."""

from collections.abc import Callable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypedDict

from laneway.durations import Duration
from laneway.errors import InvalidOption, shown
from laneway.model import OnDuplicate

ByArguments = str | Callable[..., str]
"""A text, or a function of the call's arguments that returns it."""


class PublishOptions(TypedDict, total=False):
    """As those of ``queue.publish``. ``channel`` and ``key`` may be functions that get the call's
    arguments and return the text. None takes back what the task or the collection says."""

    queue: str | None
    channel: ByArguments | None
    key: ByArguments | None
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


_KNOWN = PublishOptions.__optional_keys__
# One replaces the other.
_INSTEAD = {"delay": "at", "at": "delay", "expires_in": "expires_at", "expires_at": "expires_in"}


def merged(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The later ones win; None removes what was there."""
    options = dict(before)
    for name, value in given.items():
        if name not in _KNOWN:
            near = get_close_matches(name, _KNOWN, 1)
            hint = f"write {near[0]}=" if near else f"there are {', '.join(sorted(_KNOWN))}"
            raise InvalidOption(f"a task has no option {name}=: {hint}")
        options.pop(_INSTEAD.get(name, ""), None)
        if value is None:
            options.pop(name, None)
        else:
            options[name] = value
    return options


def resolved(options: Mapping[str, Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """With the channel and the key of this call."""
    found = dict(options)
    for name in ("channel", "key"):
        if callable(choose := found.get(name)):
            found[name] = _chosen(name, choose(*args, **kwargs))
    return found


def _chosen(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidOption(
            f"the function that names the {name} returned {shown(value)}: it must return a text"
        )
    return value
