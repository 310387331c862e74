"""/api/v1: every verb of the operator as one address, with the parameters that the method has."""

import json
import re
from functools import cache
from typing import Any, NamedTuple

from laneway.errors import InvalidOption, LanewayError
from laneway.inspection import DeadLetterCount, DeadLetterPosition
from laneway.operator import VERBS, Operator
from laneway.operator.verbs import check
from laneway.schedule import Schedule

from .documents import Redact, as_json, document, redacted
from .reads import CachedReader
from .request import NotFound, WebRequest, WebResponse, status_of
from .values import Parameters, write_cursor

PREFIX = "/api/v1/"
# By verb. One that is not here has its own name as its address.
_PATHS = {
    "stats": "queues",
    "message": "messages/{message_id}",
    "payload": "messages/{message_id}/payload",
    "saved_state": "messages/{message_id}/state",
    "history": "messages/{message_id}/history",
    "stored_result": "messages/{message_id}/result",
    "publish": "messages/publish",
    "cancel": "messages/cancel",
    "run_now": "messages/run-now",
    "dead_letters": "dead-letters",
    "count_dead_letters": "dead-letters/count",
    "dead_letter_groups": "dead-letters/groups",
    "redrive": "dead-letters/redrive",
    "discard": "dead-letters/discard",
    "preview": "dead-letters/preview",
    "start_redrive": "operations/redrive",
    "start_discard": "operations/discard",
    "operation": "operations/{operation_id}",
    "cancel_operation": "operations/cancel",
    "limit": "channels/limit",
    "pause_channel": "channels/pause",
    "resume_channel": "channels/resume",
    "remove_channel": "channels/remove",
    "pause": "queues/pause",
    "resume": "queues/resume",
    "pause_schedule": "schedules/pause",
    "resume_schedule": "schedules/resume",
    "run_schedule": "schedules/run",
    "remove_schedule": "schedules/remove",
    "subscribe": "subscriptions/subscribe",
    "unsubscribe": "subscriptions/unsubscribe",
    "configure": "settings/change",
    "flow": "flows/{flow_id}",
    "flow_nodes": "flows/{flow_id}/nodes",
    "flow_place": "messages/{message_id}/flow",
    "flows_with_dead": "flows/with-dead-letters",
    "dead_nodes": "flows/{flow_id}/dead-letters",
    "cancel_flow": "flows/cancel",
    "redrive_flow": "flows/redrive",
}
# It waits until the end, which is for the command line.
NOT_SERVED = frozenset({"run_operation"})


class ApiRoute(NamedTuple):
    """``path`` is below /api/v1/; what is in braces is a whole number."""

    method: str
    path: str
    verb: str

    @property
    def pattern(self) -> "re.Pattern[str]":
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>\\d{1,19})", self.path))


@cache
def api_routes() -> tuple[ApiRoute, ...]:
    """One for every verb."""
    return tuple(
        ApiRoute("POST" if verb.acts else "GET", _PATHS.get(name, name.replace("_", "-")), name)
        for name, verb in VERBS.items()
        if name not in NOT_SERVED
    )


@cache
def parameters_of(verb: str) -> Parameters:
    return Parameters(verb)


def respond(
    request: WebRequest, reader: CachedReader, operator: Operator, redact: Redact | None = None
) -> WebResponse:
    """Any address below the prefix; errors are JSON too."""
    try:
        return _json(_answer(request, reader, operator, redact))
    except LanewayError as error:
        return problem(status_of(error), str(error), type(error).__name__)


def problem(status: int, text: str, kind: str) -> WebResponse:
    return _json({"error": {"type": kind, "message": text}}, status)


def _answer(
    request: WebRequest, reader: CachedReader, operator: Operator, redact: Redact | None
) -> dict[str, Any]:
    route, found = _route(request)
    check(reader.principal, VERBS[route.verb])
    parameters = parameters_of(route.verb)
    given = {**(_body(request) if route.method == "POST" else request.params), **found}
    args, named = parameters.read(given)
    if route.method == "POST":
        done = getattr(operator, route.verb)(*args, **named)
        return {"data": document(redacted(done, redact) if redact else done)}
    value = reader.read(route.verb, *args, **named)
    answer: dict[str, Any] = {"data": document(redacted(value, redact) if redact else value)}
    if parameters.goes_on:
        answer["next"] = _next(value, named.get("limit", 100))
    if isinstance(value, DeadLetterCount):
        answer["or_more"] = value.or_more
    stale = reader.stale
    return answer | ({} if stale is None else {"age": round(stale.age, 1), "stale": stale.error})


def _route(request: WebRequest) -> tuple[ApiRoute, dict[str, str]]:
    path = request.path.removeprefix(PREFIX)
    others = []
    for route in api_routes():
        if (found := route.pattern.fullmatch(path)) is not None:
            if route.method == request.method:
                return route, found.groupdict()
            others.append(route.method)
    if others:
        raise NotFound(f"{PREFIX}{path} takes {others[0]}, not {request.method}")
    raise NotFound(f"there is nothing at {PREFIX}{path}: see {PREFIX}openapi.json")


def _body(request: WebRequest) -> dict[str, Any]:
    if not request.body:
        return {}
    kind = request.header("content-type").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InvalidOption("send JSON, with content-type: application/json")
    try:
        body = json.loads(request.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise InvalidOption("the body must be a JSON object")
    return body


def _next(rows: Any, limit: int) -> str | int | None:
    """The value of ``after``, or of ``before``, for the next page."""
    if hasattr(rows, "next"):
        found = rows.next
        return write_cursor(found) if isinstance(found, DeadLetterPosition) else found
    if len(rows) < limit:
        return None
    last = rows[-1]
    return write_cursor(last) if isinstance(last, Schedule) else int(last.id)


def _json(value: Any, status: int = 200) -> WebResponse:
    return WebResponse(status, as_json(value), "application/json")
