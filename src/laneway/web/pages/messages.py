"""Messages and one message: where it is, what was tried, what is in it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, get_args

from laneway.event import StoredResult
from laneway.flow import NodeInfo
from laneway.inspection import MessageInfo, MessagePage, MessageState
from laneway.model import HistoryEntry
from laneway.web.context import PAGE_ROWS, Answer, Context, PageView
from laneway.web.rendering import pretty, readable
from laneway.web.request import NotFound, redirect

from .flow_graph import STATES
from .flows import flow_values

FILTERS = ("queue", "channel", "kind")
_MOST_PAYLOAD = 64 * 1024
_TRACE = "traceparent"


def messages(context: Context) -> Answer:
    """A page of them by id, without payloads."""
    if "id" in context.params:
        return redirect(context.link(f"messages/{context.whole('id')}"))
    chosen: dict[str, Any] = {name: context.text(name) for name in FILTERS}
    state = context.text("state")
    page: MessagePage = context.read(
        "messages", **chosen, state=state, limit=PAGE_ROWS, after=context.whole("after")
    )
    values = {
        "rows": page,
        "looked": page.looked,
        "chosen": chosen,
        "state": state,
        "states": get_args(MessageState),
        "next": page.next,
    }
    return PageView("messages.html", "Messages", values)


def message(context: Context) -> PageView:
    """Everything about one; after its end, what the history has."""
    number = int(context.request.path.rpartition("/")[2])
    info: MessageInfo | None = context.read("message", number)
    history: list[HistoryEntry] = context.read("history", number)
    flow = flow_values(context, number)
    if info is None and not history and flow is None:
        raise NotFound(
            f"There is no message {number}: it never was, it ended and the history does not keep "
            "it, or its channel is hidden from you."
        )
    latest = info or (history[-1] if history else flow and flow["node"])
    headers: Mapping[str, Any] = info.headers if info else {}
    values = {
        "number": number,
        "info": info,
        "latest": latest,
        "history": [(entry, context.redact("error", entry.error or "")) for entry in history],
        "steps": _steps(info, history, flow["node"] if flow else None),
        "flow": flow,
        "times": {entry.id: _times(entry) for entry in history},
        "headers": context.redact("headers", pretty(dict(headers))) if headers else None,
        "trace": (trace := _trace(headers)),
        "trace_link": context.trace_url.replace("{trace}", trace) if trace else "",
        "payload": _content(context, info, "payload"),
        "saved": _content(context, info, "saved_state"),
        "returned": None if info else _result(context, number),
        "error": context.redact("error", info.error or "") if info else "",
        "traceback": context.redact("error", info.traceback or "") if info else "",
    }
    return PageView("message.html", f"Message {number}", values)


def _steps(
    info: MessageInfo | None, history: list[HistoryEntry], node: NodeInfo | None
) -> list[tuple[str, str]]:
    """The states in order, each "past", "now" or "later"."""
    if info is None and not history and node is not None:
        if node.state == "held":
            return [("held", "now"), *((one, "later") for one in ("waiting", "running"))]
        return [("held", "past"), (STATES[node.state], "now")]
    end = next((entry.outcome for entry in reversed(history) if entry.terminal), None)
    state = info.state if info else "ended"
    order = ["published", "scheduled", "waiting", "leased"]
    order.append("dead" if state == "dead" else end if state == "ended" and end else "completed")
    now = {"dead": 4, "ended": 4}.get(state)
    place = order.index(state) if now is None else now
    labels = {"leased": "running", "dead": "dead letter"}
    return [
        (labels.get(name, name), "past" if i < place else "now" if i == place else "later")
        for i, name in enumerate(order)
    ]


def _times(entry: HistoryEntry) -> tuple[timedelta | None, timedelta | None]:
    """How long it waited and how long its handler ran: waiting inside of a worker is waiting."""
    began = entry.started_at or entry.claimed_at
    if began is None:
        return None, None
    due = max((at for at in (entry.due, entry.published_at) if at is not None), default=began)
    return max(began - due, timedelta(0)), entry.ended_at - began


def _trace(headers: Mapping[str, Any]) -> str | None:
    """The id of the trace that published it, to look for in the tracing system."""
    parts = str(headers.get(_TRACE, "")).split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else None


def _content(context: Context, info: MessageInfo | None, verb: str) -> dict[str, Any] | None:
    """None if there is none to show; the text is cut, and readable whatever the bytes are."""
    if info is None or not context.may(verb):
        return None
    raw: bytes | None = context.read(verb, info.id)
    if raw is None:
        return None
    cut = raw[:_MOST_PAYLOAD]
    return {"text": context.redact("payload", readable(cut)), "cut": len(raw) > len(cut)}


def _result(context: Context, number: int) -> dict[str, Any] | None:
    """What the handler returned, if it is kept."""
    if not context.may("stored_result"):
        return None
    stored: StoredResult | None = context.read("stored_result", number)
    if stored is None:
        return None
    cut = stored.payload[:_MOST_PAYLOAD]
    whole = len(cut) == len(stored.payload)
    return {"text": context.redact("payload", readable(cut)), "cut": not whole}
