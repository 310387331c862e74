"""The dashboard as a view of the site, under WSGI and ASGI.

Superusers may do everything and staff may look, unless ``settings.LANEWAY["principal"]`` names a
function that decides otherwise.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.module_loading import import_string
from django.views.decorators.csrf import csrf_exempt

from laneway.operator import ADMIN, VIEWER, Principal
from laneway.web.dashboard import Dashboard
from laneway.web.hints import stream
from laneway.web.request import WebRequest, WebResponse

from .database_url import url_of
from .site_queue import DEFAULTS, client_for, queue_connection


def principal_of(request: HttpRequest) -> Principal | None:
    """By the site's own users; nobody is let in without the middleware that knows them."""
    user = getattr(request, "user", None)
    if user is None or not user.is_active or not user.is_staff:
        return None
    return Principal(user.get_username(), ADMIN if user.is_superuser else VIEWER)


# Requests from other sites are recognised by the headers that browsers send: no cookie is needed.
@csrf_exempt  # type: ignore[untyped-decorator]
def page(request: HttpRequest, path: str = "") -> HttpResponse | StreamingHttpResponse:
    """Every address below the one that the site's urls.py gave it."""
    answer = _answer(_board(), request, path)
    headers = {**answer.headers, "content-type": answer.content_type}
    if answer.live is None:
        return HttpResponse(answer.body, status=answer.status, headers=headers)
    if not isinstance(request, ASGIRequest):
        # A stream would hold a thread of the server: the page asks by itself every five seconds.
        return HttpResponse(status=204, headers=answer.headers)
    headers |= {"content-type": "text/event-stream", "x-accel-buffering": "no"}
    return StreamingHttpResponse(stream(answer.live), headers=headers)


def _answer(board: Dashboard, request: HttpRequest, path: str) -> WebResponse:
    """The body is read of those who may send one; Django's settings say how much of it."""
    admitted = board.admit(
        WebRequest(
            request.method or "GET",
            f"/{path}",
            request.META.get("QUERY_STRING", ""),
            {name.lower(): value for name, value in request.headers.items()},
            client=request.META.get("REMOTE_ADDR"),
            native=request,
        )
    )
    if isinstance(admitted, WebResponse):
        return admitted
    if request.method == "POST":
        admitted = replace(admitted, body=request.body)
    return board.respond(admitted)


def _board() -> Dashboard:
    options: dict[str, Any] = {**DEFAULTS, **getattr(settings, "LANEWAY", {})}
    url = url_of(queue_connection())
    return _opened(url, options["schema"], options["queue"], options.get("principal"))


@cache
def _opened(url: str, schema: str, queue: str, principal: str | None) -> Dashboard:
    hook = principal_of if principal is None else import_string(principal)
    return Dashboard(client_for(url, schema, queue), principal=hook)
