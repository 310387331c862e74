"""What verbs return, as JSON, without what the API may not tell: the same function decides that
decides for the pages.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from .rendering import pretty, readable


def document(value: Any) -> Any:
    """Rows as objects, times in ISO 8601, lengths of time in seconds, bytes as text or base64."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return _content(value)
    if is_dataclass(value) and not isinstance(value, type):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        # One that is left out must not look like one that is empty.
        return {name: document(item) for name, item in found.items() if item or name != "payload"}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: document(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): document(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [document(item) for item in value]
    return value


def _content(value: bytes) -> dict[str, str]:
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def as_json(value: Any) -> bytes:
    """Safe inside of HTML too, should a browser ever take it for that."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode()


Redact = Callable[[str, str], str]
"""Called with what it is ("payload", "error" or "headers") and its text."""
_ERRORS = frozenset({"error", "traceback", "signature", "text"})


def redacted(value: Any, redact: Redact) -> Any:
    """The value with every payload, error and header passed through ``redact``."""
    if isinstance(value, bytes):
        return redact("payload", readable(value)).encode() if value else value
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
