"""Overview: what is wrong, since when, who suffers, what to press; then the numbers."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby
from typing import Any

from laneway.inspection import ChannelInfo
from laneway.model import QueueStats
from laneway.operations import Minute
from laneway.web.context import Context, PageView

from .figures import RecentFigures, chart, lately, sparkline
from .problems import problems
from .why import why

_FULLEST = 20
_HOUR = timedelta(hours=1)


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
    minutes: list[Minute] = context.read("minutes", until=context.minute_ends)
    since = context.now - _HOUR
    lines = {"published": "published", "retried+failed+expired": "failed", "completed": "done"}
    charts = [
        ("Messages a minute", chart(minutes, lines, since)),
        ("Not ended", chart(minutes, {"depth": "not ended"}, since)),
    ]
    by_queue: list[Minute] = context.read(
        "minutes", by="queue", step=300, until=context.minute_ends
    )
    sparks = {}
    for name, rows in groupby(sorted(by_queue, key=lambda m: m.queue or ""), key=lambda m: m.queue):
        steps = sorted(rows, key=lambda m: m.at)
        last = steps[-2:]  # the step under way has only begun
        seconds = (context.now - last[0].at).total_seconds()
        done = sum(m.completed for m in last) * 60 / max(seconds, 60.0)
        sparks[name] = (done, sparkline([m.completed for m in steps]))
    return lately(minutes, context.now), charts, sparks


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
