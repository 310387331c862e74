"""/api/v1: every verb of the operator as one address, with the parameters that the method has."""

import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from inspect import getdoc
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from laneway.errors import InvalidOption, LanewayError
from laneway.inspection import DeadLetterCount, DeadLetterPosition
from laneway.model import Keep
from laneway.operator import VERBS, Operator
from laneway.operator.verbs import check
from laneway.schedule import Schedule

from .documents import Redact, as_json, document, redacted
from .reads import CachedReader
from .request import NotFound, WebRequest, WebResponse, status_of
from .values import Parameters, read_json, write_cursor

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
    "fairness": "queues/fairness",
    "set_fairness": "queues/set-fairness",
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
    body = read_json(request.body, "the body")
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


# The description of it: OpenAPI.

Schema = dict[str, Any]
_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    bytes: {"type": "object", "description": "Either text or base64.", "properties": {}},
    DeadLetterPosition: {"type": "string", "description": "The next of the page before."},
    Schedule: {"type": "string", "description": "The next of the page before."},
    DeadLetterCount: {"type": "integer", "format": "int64"},
    Any: {},
}
_SIMPLE[bytes]["properties"] = {"text": {"type": "string"}, "base64": {"type": "string"}}
_ERRORS = {
    "400": "A parameter cannot be used.",
    "403": "The principal lacks the right, or the channel is hidden from it.",
    "404": "There is no such thing.",
    "503": "The database did not answer.",
}


def openapi(version: str) -> Schema:
    """A document of OpenAPI 3.1."""
    schemas: dict[str, Schema] = {"Error": _error()}
    paths: dict[str, Schema] = {}
    for route in api_routes():
        paths.setdefault("/" + route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Laneway",
            "version": version,
            "description": "What an operator sees and does, the same as in the dashboard.",
        },
        "servers": [{"url": "."}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: ApiRoute, schemas: dict[str, Schema]) -> Schema:
    parameters = parameters_of(route.verb)
    text = " ".join((getdoc(getattr(Operator, route.verb)) or "").split())
    in_path = re.findall(r"\{(\w+)\}", route.path)
    found = [_parameter(name, "path", True, parameters.hints[name]) for name in in_path]
    others = {name: parameters.hints[name] for name in parameters.all if name not in in_path}
    operation: Schema = {
        "operationId": route.verb,
        "summary": text.partition(". ")[0].rstrip("."),
        "description": f"{text} Needs the right {VERBS[route.verb].right.value!r}.",
        "tags": [route.path.partition("/")[0]],
        "responses": _responses(route.verb, schemas),
    }
    if route.method == "GET":
        found += [_parameter(n, "query", parameters.required(n), h) for n, h in others.items()]
    elif others:
        required = [name for name in others if parameters.required(name)]
        body: Schema = {"type": "object", "additionalProperties": False}
        body["properties"] = {name: _schema(hint, {}) for name, hint in others.items()}
        body |= {"required": required} if required else {}
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": bool(required), "content": content}
    return operation | ({"parameters": found} if found else {})


def _parameter(name: str, place: str, required: bool, hint: Any) -> Schema:
    return {"name": name, "in": place, "required": required, "schema": _schema(hint, {})}


def _responses(verb: str, schemas: dict[str, Schema]) -> Schema:
    parameters = parameters_of(verb)
    properties: Schema = {"data": _schema(parameters.result, schemas, rows=True)}
    if parameters.goes_on:
        told = f"The value of {parameters.goes_on} for the next page, or null."
        properties["next"] = {"description": told}
    if parameters.result is DeadLetterCount:
        properties["or_more"] = {"type": "boolean", "description": "Whether there may be others."}
    if not VERBS[verb].acts:
        properties["age"] = {"type": "number", "description": "Seconds, if it is an old answer."}
        properties["stale"] = {"type": "string", "description": "Why there is no newer answer."}
    fine = {"type": "object", "required": ["data"], "properties": properties}
    wrong = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    answers: Schema = {
        "200": {"description": "Done.", "content": {"application/json": {"schema": fine}}}
    }
    return answers | {
        status: {"description": text, "content": wrong} for status, text in _ERRORS.items()
    }


def _schema(hint: Any, schemas: dict[str, Schema], *, rows: bool = False) -> Schema:
    """Of a parameter, or with ``rows`` of an answer, whose rows become components."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(set(inner), schemas, rows)
    if isinstance(hint, type) and issubclass(hint, list) and hint is not list:
        return _schema(hint.__orig_bases__[0], schemas, rows=rows)  # type: ignore[attr-defined]
    if hint is None or hint is type(None):
        return {"type": "null"}
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if rows and isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return _component(hint, schemas)
    if origin is Mapping or origin is dict:
        return {"type": "object"}
    if origin is tuple and Ellipsis not in inner:
        return {"type": "array"}
    if origin in (Iterable, Sequence, list, tuple, frozenset):
        return {"type": "array", "items": _schema(inner[0], schemas, rows=rows)}
    return dict(_SIMPLE.get(hint, {}))


def _union(options: set[Any], schemas: dict[str, Schema], rows: bool) -> Schema:
    null = type(None) in options
    options -= {type(None), Keep}
    if timedelta in options:
        if rows:
            found: Schema = {"type": "number", "description": "Seconds."}
        else:
            found = {"type": ["number", "string"], "description": "Seconds, or 15m, 2h, 1d."}
    elif len(options) == 1:
        found = _schema(options.pop(), schemas, rows=rows)
    else:
        found = {}
    return {"anyOf": [found, {"type": "null"}]} if null and found else found


def _component(kind: type, schemas: dict[str, Schema]) -> Schema:
    if kind.__name__ not in schemas:
        schemas[kind.__name__] = {}
        hints = get_type_hints(kind)
        names = [f.name for f in fields(kind)] if is_dataclass(kind) else list(kind._fields)  # type: ignore[attr-defined]
        schemas[kind.__name__] = {
            "type": "object",
            "required": [name for name in names if name != "payload"],
            "properties": {name: _row_field(hints[name], schemas) for name in names},
        }
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _row_field(hint: Any, schemas: dict[str, Schema]) -> Schema:
    if hint is timedelta:
        return {"type": "number", "description": "Seconds."}
    return _schema(hint, schemas, rows=True)


def _error() -> Schema:
    text = {"type": "string"}
    inner = {"type": "object", "properties": {"type": text, "message": text}}
    return {"type": "object", "properties": {"error": inner}}
