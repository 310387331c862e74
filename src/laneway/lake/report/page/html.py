"""HTML elements for the sections; numbers and times as text for people."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple


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


class Html(str):
    """Text that is HTML already, and is not escaped."""


class Head(NamedTuple):
    name: str
    numeric: bool = False


def section(anchor: str, title: str, about: str, *bodies: str) -> str:
    return f'<section id="{anchor}"><h2>{text(title)}</h2><p>{text(about)}</p>{"".join(bodies)}</section>'


def grid(*figures: str) -> str:
    return f'<div class="grid">{"".join(figures)}</div>'


def table(heads: Sequence[Head], rows: Iterable[Sequence[object]], empty: str) -> str:
    """``empty`` is shown instead of a table without rows."""
    lines = [
        "".join(_cell(head, value) for head, value in zip(heads, row, strict=True)) for row in rows
    ]
    if not lines:
        return f'<p class="none-said">{text(empty)}</p>'
    top = "".join(f'<th class="{"n" if h.numeric else ""}">{text(h.name)}</th>' for h in heads)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def badge(tone: str, said: str) -> Html:
    return Html(f'<span class="badge {tone}">{text(said)}</span>')


def code(said: object) -> Html:
    return Html(f"<code>{text(said)}</code>")


def dim(said: object) -> Html:
    return Html(f'<span class="dim">{text(said)}</span>')


def _cell(head: Head, value: object) -> str:
    shown = value if isinstance(value, Html) else text(value)
    return f'<td class="{"n" if head.numeric else ""}">{shown}</td>'
