"""Where a list continues: opaque text in addresses, the last row for the verb."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from laneway.errors import InvalidOption, shown
from laneway.inspection import DeadLetterPosition
from laneway.schedule import Schedule

# What the lists are sorted by. The other fields of a row do not matter to what comes after it.
_KEYS: dict[type, tuple[str, ...]] = {
    DeadLetterPosition: ("died_at", "id"),
    Schedule: ("queue", "name"),
}


def write_cursor(row: Any) -> str:
    """The position after this row."""
    values = [getattr(row, name) for name in _KEYS[type(row)]]
    plain = [v.isoformat() if isinstance(v, datetime) else v for v in values]
    return urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def read_cursor(kind: type, text: Any) -> Any:
    """A row at that position, with nothing in its other fields."""
    try:
        padded = str(text) + "=" * (-len(str(text)) % 4)
        values = dict(zip(_KEYS[kind], json.loads(urlsafe_b64decode(padded)), strict=True))
        if "died_at" in values:
            values["died_at"] = datetime.fromisoformat(values["died_at"]).astimezone(UTC)
            values["id"] = int(values["id"])
    except (ValueError, TypeError, OverflowError):
        raise InvalidOption(
            f"{shown(text)} is not a position in this list: begin without after"
        ) from None
    if kind is DeadLetterPosition:
        return DeadLetterPosition(**values)
    return kind(**{field.name: values.get(field.name) for field in fields(kind)})
