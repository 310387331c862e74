"""Options shared by many commands; times and durations as people type and read them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        envvar="DATABASE_URL",
        show_default=False,
        help="The database: postgresql://…, mysql://… or sqlite:///…",
    ),
]
_URLS = "The database, or several: postgresql://…, or a name in laneway.toml.  [env: DATABASE_URL]"
Urls = Annotated[
    list[str] | None, typer.Option(show_default=False, metavar="[NAME=]URL", help=_URLS)
]
Schema = Annotated[
    str | None,
    typer.Option(
        envvar="LANEWAY_SCHEMA",
        show_default=False,
        help="The schema of Laneway's tables.  [default: laneway]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

OnlyQueue = Annotated[
    str | None, typer.Option("--queue", "-q", help="Only this queue.", show_default=False)
]
OnlyChannel = Annotated[
    str | None, typer.Option("--channel", "-c", help="Only this channel.", show_default=False)
]
OnlyKind = Annotated[
    str | None, typer.Option("--kind", "-k", help="Only this kind.", show_default=False)
]
InQueue = Annotated[
    str | None,
    typer.Option(
        "--queue",
        "-q",
        envvar="LANEWAY_QUEUE",
        show_default=False,
        help="The queue's name.  [default: default]",
    ),
]
For = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="DURATION",
        help="Resume automatically after this time, e.g. 30m.",
        show_default=False,
    ),
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=10_000, help="Max number of results.")
]


_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[wdhms])")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")


def length(text: str) -> timedelta:
    """``90s``, ``5m``, ``1h30m``, ``2d``, ``500ms``."""
    if not _WHOLE.fullmatch(text.strip()):
        raise typer.BadParameter(f"{text!r} is not a duration: write 30s, 5m, 1h30m or 2d")
    total = timedelta(0)
    try:
        for number, unit in _PART.findall(text):
            name = "milliseconds" if unit == "ms" else _UNITS[unit]
            total += timedelta(**{name: float(number)})
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is too long a duration") from None
    return total


def moment(text: str) -> datetime:
    """ISO 8601; without an offset in local time."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-01-31T08:00+01:00, or 2026-01-31 08:00 (local)"
        ) from None
    if value.tzinfo:
        return value
    try:
        return value.astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is out of range: use a time in the years 1 to 9999 (UTC)"
        ) from None


def past(text: str) -> datetime:
    """A time, or how long ago."""
    if _WHOLE.fullmatch(text.strip()):
        return datetime.now(UTC) - ago(text)
    return moment(text)


def ago(text: str) -> timedelta:
    """A duration that can be subtracted from now."""
    wanted = length(text)
    try:
        datetime.now(UTC) - wanted
    except OverflowError:
        raise typer.BadParameter(
            f"{text!r} ago is before the year 1: use a shorter duration"
        ) from None
    return wanted


def age(then: datetime | None, now: datetime) -> str:
    """How long ago, or how far ahead, in at most two units."""
    if then is None:
        return ""
    seconds = (now - then).total_seconds()
    return short(seconds) if seconds >= 0 else f"in {short(-seconds)}"


def relative(then: datetime, now: datetime) -> str:
    """``8s ago``, ``in 5m``."""
    text = age(then, now)
    return text if then > now else f"{text} ago"


def short(seconds: float) -> str:
    if seconds < 1:
        return f"{int(seconds * 1000)}ms"
    parts: list[str] = []
    whole = int(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, whole = divmod(whole, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    return "".join(parts)


def clock(then: datetime | None) -> str:
    """In local time, to the second."""
    return "" if then is None else then.astimezone().isoformat(sep=" ", timespec="seconds")
