"""Numbers and times as text for people."""

from datetime import datetime
from html import escape


def number(value: float | int | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, float) and abs(value) < 10 and value != int(value):
        return f"{value:.2g}" if abs(value) < 1 else f"{value:.1f}"
    return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 10_000 else f"{value:.0f}"


def short(value: float) -> str:
    """For axes: 12k, 3.4M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}" if abs(value) >= 0.001 else "0"


def length(seconds: float | None) -> str:
    """A duration in one or two units."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "0 ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 86400:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    return f"{seconds / 86400:.1f} days"


def percent(share: float | None) -> str:
    if share is None:
        return "–"
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{share * 100:.1f} %" if 0 < share < 0.1 else f"{share * 100:.0f} %"


def clock(at: datetime | None) -> str:
    return "–" if at is None else f"{at:%a %d %b %H:%M}"


def size(value: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value:.0f} B"


def text(value: object) -> str:
    """Escaped for HTML."""
    return escape("" if value is None else str(value))
