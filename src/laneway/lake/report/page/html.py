"""HTML elements for the sections."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .format import text


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
