"""Pages that are mostly one list: channels, limits, schedules, topics, workers, system, audit."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from laneway.inspection import ChannelInfo, ChannelPage, Finding
from laneway.operations import AuditEntry
from laneway.schedule import Schedule
from laneway.shared_limits import SharedLimit, breaker_words, why_held
from laneway.topic import Subscription
from laneway.web.context import PAGE_ROWS, Context, PageView
from laneway.web.rendering import visible
from laneway.web.sentences import LIMIT_FIELDS
from laneway.web.values import read_cursor, write_cursor

from .why import why

_MOST = 1000


def channels(context: Context) -> PageView:
    """The fullest ones first, or those whose name begins with a text."""
    queue, search = context.text("queue"), context.text("search")
    paused = {"true": True, "false": False}.get(context.text("paused") or "")
    page: ChannelPage = context.read(
        "channels",
        queue=queue,
        prefix=search,
        paused=paused,
        limit=PAGE_ROWS,
        after=context.text("after"),
    )
    values = {
        "rows": [(info, why(info, context.now)) for info in page],
        "next": page.next,
        "looked": page.looked,
        "queue": queue,
        "search": search,
        "paused": context.text("paused"),
    }
    return PageView("channels.html", "Channels", values)


def channel(context: Context) -> PageView:
    """One channel, whether it holds anything or not."""
    name, queue = context.params.get("channel", ""), context.text("queue")
    info: ChannelInfo = context.read("channel", name, queue=queue)
    values = {
        "info": info,
        "why": why(info, context.now),
        "messages": context.read("messages", queue=info.queue, channel=info.channel, limit=20),
    }
    return PageView("channel.html", f"Channel {visible(info.channel)}", values)


def limits(context: Context) -> PageView:
    queue, prefix = context.text("queue"), context.text("search")
    page: ChannelPage = context.read(
        "channels",
        queue=queue,
        prefix=prefix,
        limited=True,
        limit=PAGE_ROWS,
        after=context.text("after"),
    )
    values = {
        "rows": [(info, why(info, context.now)) for info in page],
        "next": page.next,
        "looked": page.looked,
        "queue": queue,
        "search": prefix,
        "shared": _shared_limits(context) if context.may("shared_limits") else None,
        "fields": LIMIT_FIELDS,
        # Of a form that could not be used: see actions.wrong_again.
        "typed": {},
        "wrong": "",
        "focus": "",
    }
    return PageView("limits.html", "Limits", values)


def _shared_limits(context: Context) -> list[tuple[SharedLimit, str, str]]:
    """Each with what holds back those that wait for it, and how its breaker is."""
    found: Sequence[SharedLimit] = context.read("shared_limits")
    return [
        (one, why_held(one.name, {one.name: one}) if one.waiting else "", breaker_words(one))
        for one in found[:_MOST]
    ]


def schedules(context: Context) -> PageView:
    after, queue = context.text("after"), context.text("queue")
    rows: list[Schedule] = context.read(
        "schedules",
        queue=queue,
        limit=PAGE_ROWS,
        after=read_cursor(Schedule, after) if after else None,
    )
    values = {
        "rows": rows,
        "queue": queue,
        "next": write_cursor(rows[-1]) if len(rows) == PAGE_ROWS else None,
    }
    return PageView("schedules.html", "Schedules", values)


def topics(context: Context) -> PageView:
    found: list[Subscription] = sorted(context.read("subscriptions"))[:_MOST]
    grouped = [(name, list(rows)) for name, rows in groupby(found, key=lambda row: row.topic)]
    return PageView("topics.html", "Topics", {"topics": grouped, "cut": len(found) == _MOST})


_STATES = {"vanished": 0, "stopping": 1, "running": 2}


def workers(context: Context) -> PageView:
    rows: list[Any] = sorted(
        context.read("workers"), key=lambda row: (_STATES[row.state], row.host, row.pid)
    )
    alive = [row for row in rows if row.state == "running"]
    values = {
        "rows": rows[:500],
        "cut": len(rows) > 500,
        "alive": len(alive),
        "slots": sum(row.slots for row in alive),
        "used": sum(row.used for row in alive),
    }
    return PageView("workers.html", "Workers", values)


_LEVELS = {"fail": 0, "warn": 1, "ok": 2}


def system(context: Context) -> PageView:
    findings: list[Finding] = context.read("diagnose") if context.may("diagnose") else []
    values = {
        "findings": sorted(findings, key=lambda finding: _LEVELS[finding.level]),
        "settings": context.read("settings"),
        "schema_version": context.read("schema_version"),
        "now": context.now,
    }
    return PageView("system.html", "System", values)


def audit(context: Context) -> PageView:
    before = context.whole("before") or None
    rows: Sequence[AuditEntry] = context.read("audit", limit=PAGE_ROWS, before=before)
    values = {"rows": rows, "next": rows[-1].id if len(rows) == PAGE_ROWS else None}
    return PageView("audit.html", "Audit", values)
