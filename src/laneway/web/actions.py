"""Forms: one address for all verbs that act. What cannot be undone is asked about first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from laneway.errors import InvalidInput, InvalidOption, LanewayError
from laneway.model import Keep, Policy
from laneway.operator import VERBS
from laneway.operator.verbs import check
from laneway.shared_limits import SETTINGS, SharedLimit

from .api import parameters_of
from .context import Answer, Context, PageView, checked_back
from .pages import page_of
from .request import NotFound, redirect
from .results import ActionResult, SignedResults
from .sentences import LIMIT_FIELDS, UNDO, said, wrong_limit

# Form fields that are no parameters of a verb.
_OURS = ("verb", "back", "sure", "typed", "expected", "about", "new")
# In front of the name of a field: what it held when the page was made.
_WAS = "was_"
_LIMITS = (*SETTINGS, "backlog", "weight")
_UNCHANGED = ActionResult("Nothing was changed: every limit is as it was.", good=False)
# What deletes something, or ends it for good.
ASKED = {
    "discard": "Discard dead letters for good",
    "cancel": "Cancel messages",
    "remove_channel": "Remove the channel",
    "remove_schedule": "Remove the schedule",
    "remove_shared_limit": "Remove the limit",
    "unsubscribe": "Unsubscribe the queue",
    "cancel_flow": "Cancel the flow",
    "redrive_flow": "Redrive the dead letters of the flow",
}
_NOTES = {
    "cancel_flow": "What is held or waits is cancelled, handlers that run are told to stop, and "
    "its dead letters are discarded. This cannot be undone.",
    "redrive_flow": "They are tried again, and what waits for them goes on once they complete.",
    "remove_shared_limit": "What waits for it starts, as far as channels and other limits let it.",
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
        values = {"verb": name, "form": _kept(form), "note": _NOTES.get(name)}
        return PageView("sure.html", ASKED[name], values)
    form = _changed(form)
    args, named = parameters_of(name).read(_fields(name, form))
    result = _UNCHANGED
    undo = None
    if name == "set_shared_limit" and form.get("new") and not named:
        raise InvalidOption("nothing was set: fill in at least one field beside the name")
    if name not in ("limit", "set_shared_limit") or named.keys() & set(_LIMITS):
        undo = _undo(context, name, form)
        result = said(name, form, getattr(context.operator, name)(*args, **named))
    if result.good and undo is not None:
        verb_back, label, fields = undo
        result = ActionResult(result.text, True, verb_back, label, fields, result.note)
    back = checked_back(form.get("back", ""))
    mark = results.write(result, context.principal.name)
    path, _, query = back.partition("?")
    joined = f"{query}&done={mark}" if query else f"done={mark}"
    return redirect(f"{context.request.base}{path}?{joined}")


def wrong_again(context: Context, error: LanewayError) -> tuple[Context, PageView] | None:
    """The page of a form that cannot be used, with what was typed and what is wrong with it; None
    if it is no such form, or its page cannot be shown."""
    form = context.request.form
    path, _, query = checked_back(form.get("back", "")).partition("?")
    of_limit = form.get("verb") == "set_shared_limit" and path == "limits"
    if not of_limit or not isinstance(error, InvalidInput):
        return None
    page = context.at(f"/{path}", query)
    try:
        view = page_of(page)
    except LanewayError:
        return None
    if not isinstance(view, PageView):
        return None
    typed = _changed(form)
    text, field = wrong_limit(error)
    first = next((name for name in LIMIT_FIELDS if name in typed), "name")
    values = {"typed": typed, "wrong": text, "focus": field or first}
    return page, replace(view, values=view.values | values, status=400)


def _check_typed(form: Mapping[str, str]) -> None:
    """A bulk action needs the count that its preview showed, typed by hand."""
    expected = form.get("expected")
    if expected is not None and form.get("typed", "").replace(",", "").strip() != expected:
        raise InvalidOption(f"type {expected} to confirm; nothing was done")


def _changed(form: Mapping[str, str]) -> dict[str, str]:
    """Without the fields that nobody touched: what another operator changed meanwhile stays."""
    return {
        name: value
        for name, value in form.items()
        if not name.startswith(_WAS) and form.get(_WAS + name) != value
    }


def _kept(form: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if name not in ("verb", "sure")}


def _fields(verb: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Empty fields are left out, except where empty means "no limit"."""
    hints = parameters_of(verb).hints
    fields = {n: value for n, value in form.items() if n not in _OURS or n in hints}
    given = {
        name: value
        for name, value in fields.items()
        if value != "" or Keep in getattr(hints.get(name), "__args__", ())
    }
    return given | ({"weight": "1"} if given.get("weight") == "" else {})


Undo = tuple[str, str, dict[str, str]]


def _undo(context: Context, verb: str, form: Mapping[str, str]) -> Undo | None:
    """The opposite verb with the same fields; for limits the values of before."""
    kept = {
        name: form[name] for name in ("channel", "queue", "name", "kind", "topic") if form.get(name)
    }
    if verb == "limit" and context.may("channel"):
        return _undo_limit(context, kept, [name for name in _LIMITS if name in form])
    if verb == "set_shared_limit" and context.may("shared_limits"):
        return _undo_shared_limit(context, kept, [name for name in _LIMITS if name in form])
    if verb in UNDO and context.may(UNDO[verb][0]):
        opposite, label = UNDO[verb]
        taken = set(parameters_of(opposite).all)
        return opposite, label, {name: value for name, value in kept.items() if name in taken}
    return None


def _undo_shared_limit(context: Context, kept: dict[str, str], names: Sequence[str]) -> Undo:
    found = {one.name: one for one in context.operator.shared_limits()}
    before = found.get(kept.get("name", ""), SharedLimit(""))
    # A new rate brings a burst of its own.
    names = [*names, *(["burst"] if "rate" in names and "burst" not in names else [])]
    # Bounds go together, and so do the parts of a breaker.
    for some in (SETTINGS[3:5], SETTINGS[5:]):
        if set(names) & set(some):
            names = [*(name for name in names if name not in some), *some]
    return _restored("set_shared_limit", before.settings, kept, names)


def _undo_limit(context: Context, kept: dict[str, str], names: Sequence[str]) -> Undo:
    before: Policy = context.operator.channel(kept["channel"], queue=kept.get("queue")).policy
    values = {name: getattr(before, name) for name in names}
    return _restored("limit", values, kept, names)


def _restored(
    verb: str, before: Mapping[str, float | None], kept: dict[str, str], names: Sequence[str]
) -> Undo:
    texts = {name: "" if (v := before[name]) is None else f"{v:g}" for name in names}
    return verb, "Restore the old limits", {**kept, **texts}
