"""What each action did, in a sentence, and which verb takes it back."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from laneway.flow import FlowInfo
from laneway.operations import Operation

from .rendering import number, visible
from .results import ActionResult

Form = Mapping[str, str]

UNDO = {
    "pause_channel": ("resume_channel", "Resume it"),
    "resume_channel": ("pause_channel", "Pause it again"),
    "pause": ("resume", "Resume it"),
    "resume": ("pause", "Pause it again"),
    "pause_schedule": ("resume_schedule", "Resume it"),
    "resume_schedule": ("pause_schedule", "Pause it again"),
    "subscribe": ("unsubscribe", "Unsubscribe it"),
    "unsubscribe": ("subscribe", "Subscribe it again"),
}
# The fields of a shared limit, as its forms call them.
LIMIT_FIELDS = {
    "concurrency": "At once",
    "rate": "Starts a second",
    "burst": "Burst",
    "adapt_min": "Adapts from",
    "adapt_max": "Adapts up to",
    "failures": "Share that failed",
    "minimum": "Attempts at least",
    "window": "Seconds looked at",
    "pause": "Seconds of pause",
}


def said(verb: str, form: Form, value: Any) -> ActionResult:
    """What happened, for the person who pressed the button."""
    if verb == "cancel":
        return _cancelled(value)
    if verb == "run_now":
        return _made_due(value)
    if verb in ("redrive", "discard", "redrive_flow") and isinstance(value, int):
        return _letters("discard" if verb == "discard" else "redrive", value)
    if isinstance(value, FlowInfo):
        return _flow_cancelled(value)
    if verb == "cancel_operation":
        return ActionResult("Cancelled: what it has done stays done.")
    if isinstance(value, Operation):
        return _operation(value)
    sentence = _SENTENCES.get(verb)
    return ActionResult(sentence(form) if sentence else f"Done: {verb.replace('_', ' ')}.")


def _of(form: Form, what: str) -> str:
    return f"“{visible(form.get(what, ''))}”"


def _for(form: Form) -> str:
    return f" for {form['duration']}" if form.get("duration") else ""


def _whole_queue(form: Form) -> str:
    return (
        f"Kind {_of(form, 'kind')} of queue {_of(form, 'queue')}"
        if form.get("kind")
        else (f"Queue {_of(form, 'queue')}")
    )


_SENTENCES: dict[str, Callable[[Form], str]] = {
    "limit": lambda form: f"The limits of channel {_of(form, 'channel')} are changed.",
    "set_shared_limit": lambda form: (
        f"Limit {_of(form, 'name')} is {'set' if form.get('new') else 'changed'}."
    ),
    "remove_shared_limit": lambda form: f"Limit {_of(form, 'name')} is removed.",
    "pause_channel": lambda form: (
        f"Channel {_of(form, 'channel')} is paused{_for(form)}: what runs there ends, "
        "nothing new starts."
    ),
    "resume_channel": lambda form: f"Channel {_of(form, 'channel')} starts messages again.",
    "pause": lambda form: (
        f"{_whole_queue(form)} is paused{_for(form)}: what runs there ends, nothing new starts."
    ),
    "resume": lambda form: f"{_whole_queue(form)} starts messages again.",
    "set_fairness": lambda form: (
        f"Channels of queue {_of(form, 'queue')} take turns by {form.get('by', '')}."
    ),
    "remove_channel": lambda form: (
        f"Channel {_of(form, 'channel')} takes no new messages, and is deleted after its last one."
    ),
    "pause_schedule": lambda form: f"Schedule {_of(form, 'name')} is paused.",
    "resume_schedule": lambda form: f"Schedule {_of(form, 'name')} goes on with its next tick.",
    "run_schedule": lambda form: f"Schedule {_of(form, 'name')} published its message now.",
    "remove_schedule": lambda form: f"Schedule {_of(form, 'name')} is removed.",
    "subscribe": lambda form: f"Queue {_of(form, 'queue')} gets copies of {_of(form, 'topic')}.",
    "unsubscribe": lambda form: (
        f"Queue {_of(form, 'queue')} gets no more copies of {_of(form, 'topic')}."
    ),
    "configure": lambda form: "The settings are changed for all clients.",
}


def _cancelled(answers: Any) -> ActionResult:
    counts = Counter(answer.status for answer in answers)
    done = counts.pop("cancelled", 0)
    why = {
        "leased": "is being worked on",
        "requested": "is being worked on: its handler was told to stop",
        "dead": "is a dead letter already",
        "absent": "has ended already",
    }
    parts = [f"{number(done)} cancelled"] if done else []
    parts += [f"{number(n)} {why.get(status, status)}" for status, n in counts.items()]
    return ActionResult(", ".join(parts).capitalize() + ".", good=done > 0 or "requested" in counts)


def _made_due(answers: Any) -> ActionResult:
    due = sum(answer.status == "due" for answer in answers)
    if due:
        return ActionResult("Due now: a worker takes it at its channel's next turn.")
    return ActionResult("It was due already, is being worked on, or has ended.", good=False)


def _letters(verb: str, count: int) -> ActionResult:
    if count == 0:
        return ActionResult("Nothing was left to do: these dead letters are gone.", good=False)
    word = "put back into their queues" if verb == "redrive" else "discarded for good"
    return ActionResult(f"{number(count)} dead letter{'s' if count != 1 else ''} {word}.")


def _flow_cancelled(flow: FlowInfo) -> ActionResult:
    note = "Handlers that run were told to stop, which takes up to ten seconds."
    return ActionResult(
        f"Flow “{visible(flow.name)}” is cancelled: nothing more of it begins.",
        note=note if flow.live else "",
    )


def _operation(operation: Operation) -> ActionResult:
    word = "put back" if operation.action == "redrive" else "discarded"
    many = "all matching" if operation.total is None else number(operation.total)
    return ActionResult(
        f"Begun: {many} dead letters are being {word} in the background.",
        note="It goes on when you leave this page, and can be cancelled below.",
    )


def wrong_limit(error: Exception) -> tuple[str, str]:
    """What is wrong in a form of a shared limit, in the words of its fields; and which field it is
    about, "" if that is not one of them."""
    text = str(error)
    field, _, rest = text.partition(" ")
    if field not in LIMIT_FIELDS:
        field = ""
    elif field in ("concurrency", "rate") and rest.startswith(
        "is 0: "
    ):  # goes on with what to call, and nobody calls anything here
        text = f"“{LIMIT_FIELDS[field]}” is 0: leave it empty for no limit, or pause what must stop"
    else:
        text = f"“{LIMIT_FIELDS[field]}” {rest}"
    for name in ("adapt_min", "adapt_max"):
        text = text.replace(f"give {name} ", f"give “{LIMIT_FIELDS[name]}” ")
    return f"{text[:1].upper()}{text[1:]}.", field
