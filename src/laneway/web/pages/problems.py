"""What is wrong, since when, who suffers, and what to press; each thing once."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from laneway.engines.findings import STALLED, UNSERVED
from laneway.flow import DeadNode, FlowInfo
from laneway.inspection import ChannelInfo, Finding
from laneway.model import QueueStats
from laneway.operations import Minute, Pause
from laneway.web.context import Context
from laneway.web.rendering import clock_time, length, number, plural, visible

from .figures import LATELY

_ENOUGH = 20  # attempts, before a share of failures means anything
_MANY = 0.2
_STALLED = 60.0  # seconds without a start after which a queue counts as stalled
_SHOWN = 5
"""Alarms of one sort that are shown; one more says how many others there are."""
_LOOK_BACK = timedelta(hours=6)
_STEP = timedelta(minutes=5)
_ORDER = {"fail": 0, "warn": 1}
_PAGES = {
    "kinds without handlers": ("workers", "Workers"),
    "vanished workers": ("workers", "Workers"),
}


class Press(NamedTuple):
    """A button that acts at once."""

    verb: str
    label: str
    fields: dict[str, Any]


class Alarm(NamedTuple):
    """``link`` and ``label`` are the page to open, ``press`` is what can be done from here."""

    level: str
    title: str
    detail: str = ""
    since: datetime | None = None
    link: str | None = None
    label: str = ""
    press: Press | None = None


def problems(
    context: Context, queues: Sequence[QueueStats], channels: Sequence[ChannelInfo]
) -> list[Alarm]:
    """The worst first; among equals what has been wrong for longest."""
    findings: list[Finding] = context.read("diagnose") if context.may("diagnose") else []
    found = [
        *_idle_queues(context, queues, channels, findings),
        *_paused_queues(context),
        *_paused(context, channels),
        *_failing(context),
        *still_flows(context),
        *_findings(context, findings),
    ]
    far = datetime.max.replace(tzinfo=context.now.tzinfo)
    return sorted(found, key=lambda p: (_ORDER.get(p.level, 2), p.since or far))


def _idle_queues(
    context: Context,
    queues: Sequence[QueueStats],
    channels: Sequence[ChannelInfo],
    findings: Iterable[Finding],
) -> list[Alarm]:
    """Due messages and nothing in work: what the numbers tell and what diagnose() found, one alarm
    for a queue."""
    named = {finding.check: set(finding.queues) for finding in findings}
    unserved, stalled = named.get(UNSERVED, set()), named.get(STALLED, set())
    idle = [
        queue
        for queue in queues
        if queue.queue in unserved | stalled or _stands_still(queue, context.now)
    ]
    idle.sort(key=lambda queue: queue.oldest_due or context.now)
    found = []
    for queue in idle[:_SHOWN]:
        if queue.queue in unserved:
            says, do = "no worker serves it", "Start a worker for this queue."
            link = context.link("workers"), "Workers"
        else:
            says, do = "nothing is being worked on", "Look at its workers, and at who waits."
            link = context.link("channels", queue=queue.queue), "Who waits"
        found.append(
            Alarm(
                "fail",
                f"Queue “{visible(queue.queue)}”: {says}",
                f"{_waiting(queue, channels)} {do}",
                queue.oldest_due,
                *link,
            )
        )
    if len(idle) > _SHOWN:
        more = plural(len(idle) - _SHOWN, "more queue starts", "more queues start")
        oldest = idle[_SHOWN].oldest_due
        found.append(Alarm("fail", f"{more} nothing", "They are in the list below.", oldest))
    return found


def _stands_still(queue: QueueStats, now: datetime) -> bool:
    age = (now - queue.oldest_due).total_seconds() if queue.oldest_due else 0.0
    return bool(queue.waiting) and not queue.leased and not queue.paused and age > _STALLED


def _waiting(queue: QueueStats, channels: Iterable[ChannelInfo]) -> str:
    """Who suffers: the fullest channels by name."""
    names = [f"“{visible(info.channel)}”" for info in channels if info.queue == queue.queue][:3]
    others = queue.channels - len(names)
    more = f" and {plural(others, 'more', 'more')}" if names and others > 0 else ""
    word = "channel" if queue.channels == 1 else "channels"
    who = f" of {word} {', '.join(names)}{more}" if names else ""
    return f"{plural(queue.waiting, 'message', 'messages')}{who} {_wait(queue.waiting)}."


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


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
        resume = Press("resume", "Resume", {"queue": pause.queue, "kind": pause.kind})
        said = f"{by}{until}{why}."
        found.append(Alarm("warn", f"{what} is paused", said, pause.since, link, "Queue", resume))
    return found


def _paused(context: Context, channels: Iterable[ChannelInfo]) -> list[Alarm]:
    stuck = [info for info in channels if info.policy.paused and info.stats.waiting]
    if not stuck:
        return []
    waiting = sum(info.stats.waiting for info in stuck)
    names = ", ".join(f"“{visible(info.channel)}”" for info in stuck[:3])
    more = f" and {len(stuck) - 3} more" if len(stuck) > 3 else ""
    oldest = min((i.stats.oldest_due for i in stuck if i.stats.oldest_due), default=None)
    one = stuck[0]
    press = Press("resume_channel", "Resume", {"channel": one.channel, "queue": one.queue})
    due = plural(waiting, "message that is due", "messages that are due")
    many = len(stuck) > 1
    return [
        Alarm(
            "warn",
            f"{len(stuck)} paused channels hold {due}"
            if many
            else f"Channel {names} is paused and holds {due}",
            f"{names}{more}." if many else f"Queue “{visible(one.queue)}”.",
            oldest,
            context.link("channels", paused="true"),
            "Show paused channels",
            None if many else press,
        )
    ]


def recent_kinds(context: Context, queue: str | None = None) -> list[Minute]:
    """Minutes by queue and kind, of the last ten."""
    since = context.now.replace(second=0, microsecond=0) - 2 * LATELY
    named = {} if queue is None else {"queue": queue}
    found: list[Minute] = context.read(
        "minutes", by="kind", since=since, until=context.minute_ends, **named
    )
    return found


def _failing(context: Context) -> list[Alarm]:
    """Kinds of which many attempts failed lately."""
    if not context.may("minutes"):
        return []
    kinds: dict[tuple[str, str], list[Minute]] = {}
    for row in recent_kinds(context):
        kinds.setdefault((row.queue or "", row.kind or ""), []).append(row)
    failing = [
        (_bad(parts), names, parts)
        for names, parts in kinds.items()
        if _ended(parts) >= _ENOUGH
        and _bad(parts) / _ended(parts) >= _MANY
        and all(m.exact for m in parts)  # a history of failures alone would say 100%
    ]
    failing.sort(key=lambda one: (-one[0], one[1]))
    return [_failing_kind(context, *names, parts) for _, names, parts in failing[:_SHOWN]]


def _failing_kind(context: Context, queue: str, kind: str, parts: Sequence[Minute]) -> Alarm:
    dead, bad, ended = sum(m.dead for m in parts), _bad(parts), _ended(parts)
    name = f"“{visible(kind)}”" if kind else "without a kind"
    since = _failing_since(context, queue, kind)
    lately = f"In the last {length(2 * LATELY.total_seconds())}"
    became = plural(dead, "became a dead letter", "became dead letters") if dead else ""
    pause = {"queue": queue, "kind": kind, "duration": "15m"}
    return Alarm(
        "warn",
        f"Messages {name} of queue “{visible(queue)}” fail: {bad / ended:.0%} of attempts",
        f"{lately} {number(bad)} of {number(ended)} failed; {became or 'they are retried'}.",
        _first_minute(parts, since),
        context.link("dead-letters", queue=queue, kind=kind or None),
        "Dead letters",
        Press("pause", "Pause it for 15 min", pause) if kind else None,
    )


def _failing_since(context: Context, queue: str, kind: str) -> datetime | None:
    """The beginning of the steps up to now in which as many failed; six hours ago at most."""
    end = context.minute_ends
    since = end - timedelta(seconds=end.timestamp() % _STEP.total_seconds()) - _LOOK_BACK
    steps: list[Minute] = context.read(
        "minutes", queue=queue, kind=kind, step=_STEP, since=since, until=end, times=False
    )
    found = None
    for step in sorted(steps, key=lambda m: m.at, reverse=True):
        if not _ended([step]):
            continue
        if _bad([step]) / _ended([step]) < _MANY:
            break
        found = step.at
    return found


def _first_minute(parts: Sequence[Minute], since: datetime | None) -> datetime:
    """To the minute, if the first step lies in the minutes that were read."""
    minutes = sorted(m.at for m in parts if _bad([m]))
    later = [at for at in minutes if since is None or at >= since]
    if since is None or not later:
        return since or minutes[0]
    return later[0] if later[0] - since < _STEP else since


def _bad(minutes: Iterable[Minute]) -> int:
    return sum(m.retried + m.failed + m.expired for m in minutes)


def _ended(minutes: Sequence[Minute]) -> int:
    return _bad(minutes) + sum(m.completed for m in minutes)


def still_flows(context: Context) -> list[Alarm]:
    """Flows of which nothing runs, because a dead letter holds the rest."""
    if not context.may("flows") or context.lacks("flows") is not None:
        return []
    found_dead: Sequence[FlowInfo] = context.read("flows_with_dead")
    still = [flow for flow in found_dead if flow.state == "dead"]
    found = [_still_flow(context, flow) for flow in still[:_SHOWN]]
    if len(still) > _SHOWN:
        link = context.link("flows", state="dead")
        found.append(Alarm("warn", "More flows stand still", "", None, link, "Flows"))
    return found


def _still_flow(context: Context, flow: FlowInfo) -> Alarm:
    dead: Sequence[DeadNode] = context.read("dead_nodes", flow.id, limit=1)
    letters = plural(flow.dead, "dead letter holds", "dead letters hold")
    held = plural(flow.held, "node", "nodes") if flow.held else "its end"
    first = f" The first is “{visible(dead[0].kind)}” in channel “{visible(dead[0].channel)}”."
    return Alarm(
        "warn",
        f"Flow “{visible(flow.name)}” of queue “{visible(flow.queue)}” stands still",
        f"{letters} {held}.{first if dead else ''}",
        dead[0].died_at if dead else None,
        context.link(f"flows/{flow.id}"),
        "The flow",
        Press("redrive_flow", "Redrive …", {"flow_id": flow.id, "about": flow.name}),
    )


def _findings(context: Context, findings: Iterable[Finding]) -> list[Alarm]:
    """Those of queues have their own alarms."""
    return [
        Alarm(finding.level, finding.message, finding.fix or "", None, *_page(context, finding))
        for finding in findings
        if finding.level != "ok" and finding.check not in (UNSERVED, STALLED)
    ]


def _page(context: Context, finding: Finding) -> tuple[str, str]:
    page, label = _PAGES.get(finding.check, ("system", "System"))
    return context.link(page), label
