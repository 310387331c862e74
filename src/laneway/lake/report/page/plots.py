"""Plots over time and charts without a time axis, as SVG. Colours and size come from the page's
style sheet.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .html import length, short, text

WIDTH, HEIGHT = 560, 170
LEFT, RIGHT, TOP, BOTTOM = 50, 8, 12, 24
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """One line or band; ``tone`` names a colour of the style sheet."""

    name: str
    values: Values
    tone: str
    filled: bool = False


_TIMES = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 86400.0, 864000.0)
"""Ticks of a logarithmic axis, in seconds."""


class Scale:
    """Maps values to y coordinates; a logarithmic scale is for durations."""

    def __init__(self, values: Sequence[float], log: bool = False) -> None:
        self._log = log
        if log:
            positive = [value for value in values if value > 0] or [0.1, 1]
            below = [tick for tick in _TIMES if tick <= min(positive)] or [_TIMES[0]]
            above = [tick for tick in _TIMES if tick >= max(positive) and tick > below[-1]]
            self._low, self._high = below[-1], (above or [_TIMES[-1]])[0]
        else:
            self._low, self._high = 0.0, _nice(max(values, default=0) or 1.0)

    def y(self, value: float) -> float:
        span = HEIGHT - TOP - BOTTOM
        if self._log:
            inside = min(max(value, self._low), self._high)
            share = math.log(inside / self._low) / math.log(self._high / self._low)
        else:
            share = min(max(value / self._high, 0.0), 1.0)
        return HEIGHT - BOTTOM - share * span

    def ticks(self) -> list[float]:
        if self._log:
            return [tick for tick in _TIMES if self._low <= tick <= self._high]
        return [self._high * n / 4 for n in (0, 2, 4)]


def timeline(
    title: str,
    times: Sequence[datetime],
    series: Sequence[Series],
    *,
    unit: str = "",
    log: bool = False,
    mark: tuple[float, str] | None = None,
    ahead: bool = False,
) -> str:
    """Values over time. ``mark`` is a level to compare with, and its label. ``ahead``: the times are
    in the future; otherwise the last hour is not over, and its values are not final."""
    known = [v for s in series for v in s.values if v is not None]
    scale = Scale([*known, *([mark[0]] if mark else [])], log)
    parts = [_grid(scale, unit), _days(times), "" if ahead else _under_way(len(times))]
    parts += [_area(one, scale) for one in series if one.filled]
    parts += [_line(one, scale) for one in series]
    if mark:
        y = scale.y(mark[0])
        parts.append(
            f'<line class="mark" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text class="marked" x="{WIDTH - RIGHT}" y="{y - 4:.1f}">{text(mark[1])}</text>'
        )
    parts.append(_hover(times, series, unit))
    # A line without a value is not drawn, so the legend does not name it.
    seen = [one for one in series if any(value is not None for value in one.values)]
    return figure(title, "".join(parts), seen)


def _grid(scale: Scale, unit: str) -> str:
    parts = []
    for tick in scale.ticks():
        y = scale.y(tick)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text class="tick" x="{LEFT - 6}" y="{y + 3:.1f}">{_tick(tick, unit)}</text>'
        )
    return "".join(parts)


def _days(times: Sequence[datetime]) -> str:
    """A tick for each day, or every few hours in a short range."""
    hours = len(times)
    every = 24 * max(1, math.ceil(hours / 24 / 7)) if hours > 48 else max(1, math.ceil(hours / 6))
    parts = []
    for n, at in enumerate(times):
        due = (
            at.hour == 0 and at.toordinal() % max(every // 24, 1) == 0
            if hours > 48
            else n % every == 0
        )
        if due:
            x = _x(n, hours)
            said = f"{at:%d %b}" if hours > 48 else f"{at:%H:%M}"
            parts.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            )
            parts.append(f'<text class="tick mid" x="{x:.1f}" y="{HEIGHT - 7}">{said}</text>')
    return "".join(parts)


def _under_way(count: int) -> str:
    """Shades the hour that is not over."""
    if count < 2:
        return ""
    x, edge = _x(count - 2, count), _x(count - 1, count)
    return (
        f'<rect class="under-way" x="{x:.1f}" y="{TOP}" width="{edge - x:.1f}" '
        f'height="{HEIGHT - TOP - BOTTOM}"><title>this hour is not over</title></rect>'
    )


def _line(one: Series, scale: Scale) -> str:
    """A value between two gaps is drawn as a dot."""
    values, count = one.values, len(one.values)
    path, dots, pen = [], [], "M"
    for n, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        x, y = f"{_x(n, count):.1f}", f"{scale.y(value):.1f}"
        path.append(f"{pen}{x},{y}")
        if pen == "M" and (n + 1 == count or values[n + 1] is None):
            dots.append(f'<circle class="fill-{one.tone}" cx="{x}" cy="{y}" r="1.8"/>')
        pen = "L"
    line = f'<path class="line-{one.tone}" d="{"".join(path)}"/>' if path else ""
    return line + "".join(dots)


def _area(one: Series, scale: Scale) -> str:
    """The area under a line."""
    count = len(one.values)
    upper = [f"{_x(n, count):.1f},{scale.y(v or 0):.1f}" for n, v in enumerate(one.values)]
    lower = [f"{_x(n, count):.1f},{scale.y(0):.1f}" for n in (count - 1, 0)]
    return f'<path class="area-{one.tone}" d="M{"L".join([*upper, *lower])}Z"/>'


def _hover(times: Sequence[datetime], series: Sequence[Series], unit: str) -> str:
    step = (WIDTH - LEFT - RIGHT) / max(len(times), 1)
    parts = []
    for n, at in enumerate(times):
        said = [f"{s.name} {_tick(v, unit)}" for s in series if (v := s.values[n]) is not None]
        if said:
            parts.append(
                f'<rect class="hover" x="{_x(n, len(times)) - step / 2:.1f}" y="{TOP}" width="{step:.2f}" '
                f'height="{HEIGHT - TOP - BOTTOM}"><title>{at:%a %d %b %H:%M}\n{text(", ".join(said))}</title></rect>'
            )
    return "".join(parts)


def figure(
    title: str, body: str, series: Sequence[Series], height: int = HEIGHT, kind: str = ""
) -> str:
    legend = "".join(
        f'<span class="key {s.tone}">{text(s.name)}</span>' for s in series if len(series) > 1
    )
    return (
        f'<figure class="{kind}"><figcaption>{text(title)}<span class="legend">{legend}</span></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{text(title)}">{body}</svg></figure>'
    )


def _x(place: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (place / (count - 1) if count > 1 else 0.5)


def _nice(value: float) -> float:
    power = 10 ** math.floor(math.log10(value))
    return float(next(s * power for s in (1, 2, 4, 5, 8, 10) if s * power >= value * 0.999))


def _tick(value: float, unit: str) -> str:
    if unit != "s":
        return short(value) + unit
    if value and value % 86400 == 0:
        return f"{value / 86400:.0f} d"
    return f"{value:.3g} s" if 1 <= value < 60 else length(value)


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
