"""Templates, and how numbers, ages and sizes are written on pages."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

NOTHING = "\u2013"
"""A dash, where there is no value."""
_STEPS = ((86400.0 * 2, 86400.0, "d"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))


@cache
def environment() -> Environment:
    """Everything is escaped; a name that is not given is an error."""
    made = Environment(
        loader=PackageLoader("laneway.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": number,
        "short": short,
        "length": length,
        "clock": clock_time,
        "stamp": stamp,
        "size": size,
        "percent": percent,
        "pretty": pretty,
        "visible": visible,
    }
    return made


def render(template: str, values: Mapping[str, Any]) -> bytes:
    return environment().get_template(template).render(values).encode("utf-8", "replace")


def number(value: float | None) -> str:
    """In full, with commas."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.1f}"


def plural(count: int, one: str, many: str) -> str:
    return f"{number(count)} {one if count == 1 else many}"


def short(value: float | None) -> str:
    """At most five characters: 9,999 then 12.3k, 4.56M."""
    if value is None:
        return NOTHING
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scaled = value / (limit if unit != "k" else 1e3)
            return f"{scaled:.0f}{unit}" if abs(scaled) >= 100 else f"{scaled:.1f}{unit}"
    return number(value)


def length(value: timedelta | float | None) -> str:
    """One unit: 200 ms, 45 s, 12 min, 5 h, 3 d."""
    if value is None:
        return NOTHING
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    seconds = max(seconds, 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 10:
        return f"{seconds:.2g} s"
    for least, unit, name in _STEPS:
        if seconds >= least:
            return f"{seconds / unit:.0f} {name}"
    return "0 s"


def clock_time(value: datetime | None) -> str:
    return "" if value is None else value.astimezone(UTC).strftime("%H:%M:%S")


def stamp(value: datetime | None) -> str:
    """In UTC, as every log has it."""
    return "" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def size(value: int | None) -> str:
    if value is None:
        return NOTHING
    if value < 1024:
        return f"{value} B"
    return f"{value / 1024:.1f} KiB" if value < 1024**2 else f"{value / 1024**2:.1f} MiB"


def percent(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value * 100:.0f}%" if value >= 0.1 or value == 0 else f"{value * 100:.1f}%"


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str, sort_keys=True)


def readable(raw: bytes) -> str:
    """JSON with indents, text as it is, else the first bytes in hex."""
    try:
        return pretty(json.loads(raw))
    except (ValueError, RecursionError):
        pass
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw[:4096].hex(" ")


def visible(name: str) -> str:
    """A name as it is, except for characters that hide or turn around what stands beside them."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
