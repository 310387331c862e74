"""Dead letters: one by one, and in bulk after a preview."""

from datetime import datetime, timedelta
from typing import Any

from laneway.errors import InvalidOption
from laneway.inspection import (
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.operations import Operation
from laneway.web.context import PAGE_ROWS, Context, PageView
from laneway.web.values import convert, read_cursor, write_cursor

_FILTERS = ("queue", "channel", "kind", "reason", "error_type")
_TIMES = ("since", "until")
_MOST_COUNTED = 10_000
_GROUPS = 20


def chosen(context: Context) -> dict[str, Any]:
    """The filters of the address, as the verbs take them."""
    found: dict[str, Any] = {name: context.text(name) for name in _FILTERS}
    return found | {name: _time(context.text(name)) for name in _TIMES}


def dead_letters(context: Context) -> PageView:
    after = context.text("after")
    rows: DeadLetterPage = context.read(
        "dead_letters",
        **chosen(context),
        limit=PAGE_ROWS,
        after=read_cursor(DeadLetterPosition, after) if after else None,
    )
    values = {
        "groups": _groups(context),
        "operations": _operations(context),
        "rows": [(row, context.redact("error", row.error or "")) for row in rows],
        "chosen": {name: context.text(name) for name in _FILTERS + _TIMES},
        "next": write_cursor(rows.next) if rows.next else None,
    }
    return PageView("dead.html", "Dead letters", values)


def bulk(context: Context) -> PageView:
    """What a redrive or a discard would take, before it is done."""
    action = context.text("action")
    if action not in ("redrive", "discard"):
        raise InvalidOption("action must be redrive or discard")
    wanted = chosen(context)
    # What dies from now on was not previewed, so it is not meant.
    until = wanted["until"] or context.now
    wanted["until"] = until
    count, capped, examples = _preview(context, wanted)
    rare = any(wanted[name] is not None for name in _FILTERS[1:])
    values = {
        "action": action,
        "verb": f"start_{action}" if context.may(f"start_{action}") else action,
        "count": count,
        "capped": capped,
        "chosen": {
            name: value.isoformat() if name == "since" else value
            for name, value in wanted.items()
            if value is not None and name != "until"
        },
        "until": until.isoformat(),
        "examples": examples,
        "rare": rare,
        "group": context.whole("group"),
    }
    return PageView("bulk.html", f"{action.capitalize()} dead letters", values)


def _preview(context: Context, wanted: dict[str, Any]) -> tuple[int, bool, Any]:
    if context.may("preview"):
        seen = context.read("preview", **wanted)
        return seen.count, seen.or_more, seen.sample
    count: DeadLetterCount = context.read("count_dead_letters", **wanted, limit=_MOST_COUNTED)
    return int(count), count.or_more, context.read("dead_letters", **wanted, limit=5)


def _groups(context: Context) -> DeadLetterGroups | None:
    """On the first page only, and only of a whole queue: that is what is grouped."""
    others = (*_FILTERS[1:], *_TIMES, "after")
    if not context.may("dead_letter_groups") or any(map(context.text, others)):
        return None
    found: DeadLetterGroups = context.read(
        "dead_letter_groups", queue=context.text("queue"), limit=_GROUPS
    )
    return found


def _operations(context: Context) -> list[Operation]:
    """Those that run, and those that ended within the hour."""
    if not context.may("operations"):
        return []
    rows: list[Operation] = context.read("operations", limit=20)
    since = context.now - timedelta(hours=1)
    return [row for row in rows if row.ended_at is None or row.ended_at >= since]


def _time(text: str | None) -> Any:
    """Browsers send a time without seconds or zone; it is meant in UTC, as shown."""
    if text is None:
        return None
    return convert("the time", text if text[-1] in "Zz" or "+" in text else f"{text}Z", datetime)
