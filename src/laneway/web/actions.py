"""Forms: one address for all verbs that act. What cannot be undone is asked about first."""

from collections.abc import Mapping
from typing import Any

from laneway.errors import InvalidOption
from laneway.model import Keep, Policy
from laneway.operator import VERBS
from laneway.operator.verbs import check

from .api import parameters_of
from .context import Answer, Context, PageView, checked_back
from .request import redirect
from .results import ActionResult, SignedResults
from .sentences import UNDO, said
from .statuses import NotFound

# Form fields that are no parameters of a verb.
_OURS = ("verb", "back", "sure", "typed", "expected")
# What deletes something, or ends it for good.
ASKED = {
    "discard": "Discard dead letters for good",
    "cancel": "Cancel messages",
    "remove_channel": "Remove the channel",
    "remove_schedule": "Remove the schedule",
    "unsubscribe": "Unsubscribe the queue",
}


def act(context: Context, results: SignedResults) -> Answer:
    """Does it and sends the browser back to where it was, with the result."""
    form = context.request.form
    name = form.get("verb", "")
    verb = VERBS.get(name)
    if verb is None or not verb.acts:
        raise NotFound(f"there is no action {name[:40]!r}")
    check(context.principal, verb)
    _check_typed(form)
    if name in ASKED and form.get("sure") != "yes":
        return PageView("sure.html", ASKED[name], {"verb": name, "form": _kept(form)})
    args, named = parameters_of(name).read(_fields(name, form))
    undo = _undo(context, name, args, named, form)
    value = getattr(context.operator, name)(*args, **named)
    result = said(name, form, value)
    if result.good and undo is not None:
        verb_back, label, fields = undo
        result = ActionResult(result.text, True, verb_back, label, fields, result.note)
    back = checked_back(form.get("back", ""))
    mark = results.write(result, context.principal.name)
    path, _, query = back.partition("?")
    joined = f"{query}&done={mark}" if query else f"done={mark}"
    return redirect(f"{context.request.base}{path}?{joined}")


def _check_typed(form: Mapping[str, str]) -> None:
    """A bulk action needs the count that its preview showed, typed by hand."""
    expected = form.get("expected")
    if expected is not None and form.get("typed", "").replace(",", "").strip() != expected:
        raise InvalidOption(f"type {expected} to confirm; nothing was done")


def _kept(form: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if name not in ("verb", "sure")}


def _fields(verb: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Empty fields are left out, except where empty means "no limit"."""
    hints = parameters_of(verb).hints
    fields = {n: value for n, value in form.items() if n not in _OURS or n in hints}
    return {
        name: value
        for name, value in fields.items()
        if value != "" or Keep in getattr(hints.get(name), "__args__", ())
    }


Undo = tuple[str, str, dict[str, str]]


def _undo(
    context: Context, verb: str, args: list[Any], named: dict[str, Any], form: Mapping[str, str]
) -> Undo | None:
    """The opposite verb with the same fields; for limits the values of before."""
    kept = {
        name: form[name] for name in ("channel", "queue", "name", "kind", "topic") if form.get(name)
    }
    if verb == "limit" and context.may("channel"):
        return _undo_limit(context, kept)
    if verb in UNDO and context.may(UNDO[verb][0]):
        opposite, label = UNDO[verb]
        taken = set(parameters_of(opposite).all)
        return opposite, label, {name: value for name, value in kept.items() if name in taken}
    return None


def _undo_limit(context: Context, kept: dict[str, str]) -> Undo:
    before: Policy = context.operator.channel(kept["channel"], queue=kept.get("queue")).policy
    names = ("concurrency", "rate", "burst", "backlog", "weight")
    values = {name: getattr(before, name) for name in names}
    texts = {name: "" if v is None else f"{v:g}" for name, v in values.items()}
    return "limit", "Restore the old limits", {**kept, **texts}
