"""What the API may tell: the same function decides that decides for the pages."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from .rendering import pretty, readable

Redact = Callable[[str, str], str]
"""Called with what it is ("payload", "error" or "headers") and its text."""
_ERRORS = frozenset({"error", "traceback", "signature", "text"})


def redacted(value: Any, redact: Redact) -> Any:
    """The value with every payload, error and header passed through ``redact``."""
    if isinstance(value, bytes):
        return redact("payload", readable(value)).encode()
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return replace(value, **{n: _field(n, getattr(value, n), redact) for n in names})
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        changed = {name: _field(name, item, redact) for name, item in value._asdict().items()}
        return type(value)(**changed)
    if isinstance(value, list | tuple):
        return [redacted(item, redact) for item in value]
    return value


def _field(name: str, value: Any, redact: Redact) -> Any:
    if name in _ERRORS and isinstance(value, str):
        return redact("error", value)
    if name == "headers" and isinstance(value, Mapping) and value:
        return _headers(redact("headers", pretty(dict(value))))
    return redacted(value, redact)


def _headers(text: str) -> Any:
    """An object again, if what is left of it is one."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"redacted": text}
