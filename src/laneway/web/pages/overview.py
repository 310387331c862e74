"""Overview: what is wrong, since when, who suffers, what to press; then the numbers."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from laneway.inspection import ChannelInfo
from laneway.model import QueueStats
from laneway.operations import Minute
from laneway.web.context import Context, PageView

from .figures import RecentFigures, chart, lately, sparkline, whole_minutes
from .problems import problems, recent_kinds
from .why import why

_FULLEST = 20
_HOUR = timedelta(hours=1)
_STEP = timedelta(minutes=5)


def overview(context: Context) -> PageView:
    queues: list[QueueStats] = context.read("stats")
    channels: list[ChannelInfo] = context.read("channels", limit=_FULLEST)
    now = context.now
    context.look_at_starts()  # so that a queue's page knows already who was served
    figures, charts, sparks = _figures(context)
    values = {
        "figures": figures,
        "charts": charts,
        "sparks": sparks,
        "problems": problems(context, queues, channels),
        "queues": sorted(queues, key=lambda q: (q.oldest_due or now, q.queue)),
        "total": _total(queues),
        "channels": [(info, why(info, now)) for info in channels if info.stats.waiting],
    }
    return PageView("overview.html", "Overview", values)


def _figures(context: Context) -> tuple[RecentFigures | None, list[Any], dict[str, Any]]:
    """Of the last hour: all queues together, and each by five minutes."""
    if not context.may("minutes"):
        return None, [], {}
    minutes: list[Minute] = context.read("minutes", until=context.minute_ends, times=False)
    since, whole = context.now - _HOUR, whole_minutes(minutes, context.now)
    lines = {"published": "published", "retried+failed+expired": "failed", "completed": "done"}
    charts = [
        ("Messages a minute", chart(whole, lines, since)),
        ("Not ended", chart(whole, {"depth": "not ended"}, since)),
    ]
    return lately(recent_kinds(context), context.now), charts, _sparks(context)


def _sparks(context: Context) -> dict[str, Any]:
    """By queue: what is done a minute, and a line of the last hour by five minutes."""
    recent = _by_queue(recent_kinds(context))
    until = context.minute_ends
    steps = _by_queue(context.read("minutes", by="queue", step=_STEP, until=until, times=False))
    found = {}
    for name in recent.keys() | steps.keys():
        every = steps.get(name, [])
        whole = [m for m in every if m.at + _STEP <= context.now]  # the last one has only begun
        line = sparkline([m.completed for m in (whole if len(whole) > 1 else every)])
        found[name] = (lately(recent.get(name, []), context.now).completed, line)
    return found


def _by_queue(minutes: list[Minute]) -> dict[str, list[Minute]]:
    found: dict[str, list[Minute]] = {}
    for minute in sorted(minutes, key=lambda m: m.at):
        found.setdefault(minute.queue or "", []).append(minute)
    return found


def _total(queues: Iterable[QueueStats]) -> QueueStats:
    rows = list(queues)
    return QueueStats(
        "",
        sum(q.waiting for q in rows),
        sum(q.scheduled for q in rows),
        sum(q.leased for q in rows),
        sum(q.dead for q in rows),
        sum(q.channels for q in rows),
        min((q.oldest_due for q in rows if q.oldest_due), default=None),
        all(q.exact for q in rows),
    )
