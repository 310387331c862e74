"""Charts without a time axis, as SVG: bars, tiny bars, and a grid of rated hours."""

from collections.abc import Sequence

from .format import text
from .plots import WIDTH, figure


def bars(
    title: str,
    names: Sequence[str],
    values: Sequence[float],
    shown: Sequence[str],
    tone: str = "one",
) -> str:
    """Horizontal bars, one for each name."""
    row, label = 22, 150
    height = row * len(names) + 4
    most = max([*values, 1e-9])
    parts = []
    for place, (name, value, said) in enumerate(zip(names, values, shown, strict=True)):
        y = place * row + 2
        width = (WIDTH - label - 110) * value / most
        parts.append(
            f'<text class="name" x="{label - 8}" y="{y + 14}">{text(_cut(name, 22))}</text>'
            f'<rect class="fill-{tone}" x="{label}" y="{y + 3}" width="{max(width, 1):.1f}" height="14" rx="3">'
            f"<title>{text(name)}: {text(said)}</title></rect>"
            f'<text class="said" x="{label + width + 6:.1f}" y="{y + 14}">{text(said)}</text>'
        )
    return figure(title, "".join(parts), (), height, "wide")


def spark(values: Sequence[float], tone: str = "bad") -> str:
    """A tiny bar chart for a table cell."""
    most = max([*values, 1e-9])
    step = 5
    cells = "".join(
        f'<rect class="fill-{tone}" x="{n * step}" y="{16 - 15 * v / most:.1f}" width="4" '
        f'height="{15 * v / most + 1:.1f}"/>'
        for n, v in enumerate(values)
    )
    return f'<svg class="spark" viewBox="0 0 {len(values) * step} 18" width="{len(values) * step}" height="18" aria-hidden="true">{cells}</svg>'


def heat(
    title: str, rows: Sequence[tuple[str, Sequence[tuple[str, str]]]], heads: Sequence[str]
) -> str:
    """A grid of rated cells: (tone, tooltip)."""
    label, height, top = 168, 18, 16
    step = (WIDTH - label) / max(len(heads), 1)
    parts = [
        f'<text class="tick mid" x="{label + (n + 0.5) * step:.1f}" y="11">{text(head)}</text>'
        for n, head in enumerate(heads)
        if n % 3 == 0
    ]
    for line, (name, cells) in enumerate(rows):
        y = top + line * height
        parts.append(
            f'<text class="name" x="{label - 8}" y="{y + 13}">{text(_cut(name, 26))}</text>'
        )
        for n, (tone, said) in enumerate(cells):
            parts.append(
                f'<rect class="cell fill-{tone}" x="{label + n * step:.1f}" y="{y}" width="{step - 1.5:.1f}" '
                f'height="{height - 2}" rx="2"><title>{text(said)}</title></rect>'
            )
    return figure(title, "".join(parts), (), top + height * len(rows) + 2, "wide")


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
