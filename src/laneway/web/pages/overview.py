"""Overview: what is wrong, since when, who suffers, what to press; then the numbers."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from laneway.inspection import ChannelInfo, Finding
from laneway.model import QueueStats
from laneway.operations import Minute, Pause
from laneway.web.context import Context, PageView
from laneway.web.rendering import clock_time, length, number, plural, visible

from .figures import LATELY, RecentFigures, chart, lately, sparkline
from .why import why

_ENOUGH = 20  # attempts, before a share of failures means anything
_MANY = 0.2
_STALLED = 60.0  # seconds without a start after which a queue counts as stalled
_FULLEST = 20
_HOUR = timedelta(hours=1)
_ORDER = {"fail": 0, "warn": 1}


class Alarm(NamedTuple):
    """``link`` and ``label`` are what to press."""

    level: str
    title: str
    detail: str = ""
    since: datetime | None = None
    link: str | None = None
    label: str = ""


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


def problems(
    context: Context, queues: Iterable[QueueStats], channels: Iterable[ChannelInfo]
) -> list[Alarm]:
    """The worst first; among equals what has been wrong for longest."""
    found = [
        *_stalled(context, queues),
        *_paused_queues(context),
        *_paused(context, channels),
        *_failing(context),
        *_findings(context),
    ]
    far = datetime.max.replace(tzinfo=context.now.tzinfo)
    return sorted(found, key=lambda p: (_ORDER.get(p.level, 2), p.since or far))


def _stalled(context: Context, queues: Iterable[QueueStats]) -> list[Alarm]:
    """Due messages, and nothing in work."""
    found = []
    for queue in queues:
        age = (context.now - queue.oldest_due).total_seconds() if queue.oldest_due else 0.0
        if queue.waiting and not queue.leased and not queue.paused and age > _STALLED:
            found.append(
                Alarm(
                    "fail",
                    f"Queue “{visible(queue.queue)}”: nothing is being worked on",
                    f"{plural(queue.waiting, 'message waits', 'messages wait')} in "
                    f"{plural(queue.channels, 'channel', 'channels')}, "
                    f"the oldest for {length(age)}. Is a worker running that serves this queue?",
                    queue.oldest_due,
                    context.link("channels", queue=queue.queue),
                    "Who waits",
                )
            )
    return found


def _paused_queues(context: Context) -> list[Alarm]:
    """Whole queues, and kinds."""
    if not context.may("pauses"):
        return []
    pauses: list[Pause] = context.read("pauses")
    found = []
    for pause in pauses[:20]:
        what = f"Queue “{visible(pause.queue)}”"
        if pause.kind is not None:
            what = f"Kind “{visible(pause.kind)}” of queue “{visible(pause.queue)}”"
        by = f"By {visible(pause.actor)}" if pause.actor else "By somebody"
        until = f", until {clock_time(pause.until)}" if pause.until else ", until it is resumed"
        why = f": {visible(pause.reason)}" if pause.reason else ""
        link = context.link("queue", name=pause.queue)
        found.append(
            Alarm("warn", f"{what} is paused", f"{by}{until}{why}.", pause.since, link, "Resume")
        )
    return found


def _paused(context: Context, channels: Iterable[ChannelInfo]) -> list[Alarm]:
    stuck = [info for info in channels if info.policy.paused and info.stats.waiting]
    if not stuck:
        return []
    waiting = sum(info.stats.waiting for info in stuck)
    names = ", ".join(f"“{visible(info.channel)}”" for info in stuck[:3])
    more = f" and {len(stuck) - 3} more" if len(stuck) > 3 else ""
    oldest = min((i.stats.oldest_due for i in stuck if i.stats.oldest_due), default=None)
    many = len(stuck) > 1
    return [
        Alarm(
            "warn",
            f"{len(stuck)} paused channel{'s hold' if many else ' holds'} {number(waiting)} "
            "messages that are due",
            f"{names}{more}",
            oldest,
            context.link("channels", paused="true"),
            "Show paused channels",
        )
    ]


def _failing(context: Context) -> list[Alarm]:
    """Kinds of which many attempts failed lately."""
    if not context.may("minutes"):
        return []
    until = context.minute_ends
    since = context.now.replace(second=0, microsecond=0) - 2 * LATELY
    rows: list[Minute] = context.read("minutes", by="kind", since=since, until=until)
    counts: dict[tuple[str, str], list[Minute]] = {}
    for row in rows:
        counts.setdefault((row.queue or "", row.kind or ""), []).append(row)
    found = []
    for (queue, kind), parts in counts.items():
        bad = sum(m.retried + m.failed + m.expired for m in parts)
        all_ended = bad + sum(m.completed for m in parts)
        if all_ended >= _ENOUGH and bad / all_ended >= _MANY:
            dead = sum(m.dead for m in parts)
            name = f"“{visible(kind)}”" if kind else "without a kind"
            found.append(
                Alarm(
                    "warn",
                    f"Messages {name} of queue “{visible(queue)}” fail: "
                    f"{bad / all_ended:.0%} of {number(all_ended)} attempts",
                    f"{number(dead)} became dead letters." if dead else "They are retried.",
                    min(m.at for m in parts if m.retried + m.failed + m.expired),
                    context.link("dead-letters", queue=queue, kind=kind or None),
                    "Dead letters",
                )
            )
    return found


def _findings(context: Context) -> list[Alarm]:
    if not context.may("diagnose"):
        return []
    findings: list[Finding] = context.read("diagnose")
    return [
        Alarm(finding.level, finding.message, finding.fix or "")
        for finding in findings
        if finding.level != "ok"
    ]


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
