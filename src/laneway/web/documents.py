"""What verbs return, as JSON."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any


def document(value: Any) -> Any:
    """Rows as objects, times in ISO 8601, lengths of time in seconds, bytes as text or base64."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return _content(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: document(getattr(value, field.name)) for field in fields(value)}
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
