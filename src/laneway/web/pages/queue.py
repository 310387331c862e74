"""Queue: its rates and times, its kinds, who is served and why the others wait."""

from datetime import timedelta
from itertools import groupby
from typing import Any

from laneway.model import QueueStats
from laneway.operations import Minute
from laneway.web.context import Context, PageView
from laneway.web.rendering import visible
from laneway.web.request import NotFound

from .figures import chart, lately, whole_minutes
from .problems import recent_kinds
from .starts import shares
from .why import why

_HOUR = timedelta(hours=1)
_CHANNELS = 100


def queue(context: Context) -> PageView:
    name = context.text("name") or "default"
    rows: list[QueueStats] = [row for row in context.read("stats") if row.queue == name]
    minutes: list[Minute] = []
    if context.may("minutes"):
        minutes = context.read("minutes", queue=name, until=context.minute_ends, times=False)
    if not rows and not minutes and name != context.operator_queue:
        raise NotFound(f"There is no queue “{visible(name)}” that holds anything.")
    values = {
        "name": name,
        "stats": rows[0] if rows else QueueStats(name),
        "pauses": _pauses(context, name),
        **_figures(context, name, minutes),
        **_fairness(context, name),
    }
    return PageView("queue.html", f"Queue {visible(name)}", values)


def _figures(context: Context, name: str, minutes: list[Minute]) -> dict[str, Any]:
    if not context.may("minutes"):
        return {"figures": None, "charts": [], "kinds": []}
    since, whole = context.now - _HOUR, whole_minutes(minutes, context.now)
    charts = [
        (
            "Messages a minute",
            chart(
                whole,
                {"published": "published", "retried+failed+expired": "failed", "completed": "done"},
                since,
            ),
        ),
        ("Not ended", chart(whole, {"depth": "not ended"}, since)),
    ]
    by_kind = recent_kinds(context, name)
    ordered = sorted(by_kind, key=lambda row: row.kind or "")
    kinds = [
        (kind, lately(list(group), context.now))
        for kind, group in groupby(ordered, key=lambda row: row.kind or "")
    ]
    return {"figures": lately(by_kind, context.now), "charts": charts, "kinds": kinds[:100]}


def _fairness(context: Context, name: str) -> dict[str, Any]:
    channels = context.read("channels", queue=name, limit=_CHANNELS)
    context.look_at_starts()
    starts = context.starts.starts(name)
    found = shares(starts, channels, context.now)
    return {
        "fairness": context.read("fairness", queue=name) if context.may("fairness") else None,
        "shares": [(share, why(share.info, context.now)) for share in found],
        "starts": sum(starts.values()),
        "looked_for": context.starts.seconds,
    }


def _pauses(context: Context, name: str) -> list[Any]:
    if not context.may("pauses"):
        return []
    return [pause for pause in context.read("pauses") if pause.queue == name]
