"""The page on which a browser gives the token, and what is answered to those who may not look."""

import logging
import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode

from .access import HEADERS, Access, Refused
from .api import PREFIX, problem
from .assets import asset_version
from .context import checked_back
from .rendering import render
from .request import WebRequest, WebResponse, redirect
from .sessions import Sessions

LOGIN, LOGOUT = "/login", "/logout"
MOST_BODY = 4096
"""Bytes that are read of somebody who has not shown a token yet."""

_log = logging.getLogger("laneway.web")
_BACK = re.compile(r"(db/[A-Za-z0-9._-]+/)?(.*)", re.DOTALL)

T = TypeVar("T", WebResponse, WebRequest | WebResponse)


def safely(title: str, request: WebRequest, work: Callable[[WebRequest], T]) -> T | WebResponse:
    """What ``work`` answers to it, or why there is no answer; with the headers of every answer."""
    answer: T | WebResponse
    try:
        answer = work(request)
    except Refused as refused:
        answer = refusal(title, request, refused)
    except Exception:
        _log.exception("a page failed")
        answer = WebResponse(500, b"This page failed; the log says why.", "text/plain")
        if request.path.startswith(PREFIX):
            answer = problem(500, "this call failed; the log says why", "Failed")
    if isinstance(answer, WebResponse):
        answer.headers = {**HEADERS, **answer.headers}
    return answer


def is_public(access: Access, request: WebRequest) -> bool:
    """What a browser needs before it has signed in."""
    asks = access.sessions is not None and request.path == LOGIN
    return asks or (request.path.startswith("/static/") and request.method != "POST")


def sign_in(access: Access, title: str, request: WebRequest) -> WebResponse:
    """The page, or what the form on it does: a cookie for the right token."""
    assert access.sessions is not None
    if request.method != "POST":
        return _page(title, request, 200)
    form = request.form
    try:
        access.check_token(form.get("token", ""), request.client)
    except Refused as refused:
        return refusal(title, request, refused)
    answer = redirect("./" + _checked(form.get("back", "")))
    name = form.get("name", "").strip()[:200] or "token"
    answer.headers["set-cookie"] = access.sessions.begin(name, request)
    return answer


def sign_out(sessions: Sessions, request: WebRequest) -> WebResponse:
    answer = redirect("./")
    if request.method == "POST":
        answer.headers["set-cookie"] = sessions.end(request)
    return answer


def refusal(title: str, request: WebRequest, refused: Refused) -> WebResponse:
    """For people the page to sign in on, if that would help."""
    status, headers = 403, {}
    if refused.ask:
        # Not Basic: browsers would ask for a password in a window of their own.
        status, headers = 401, {"www-authenticate": 'Bearer realm="Laneway"'}
    elif refused.wait:
        status, headers = 429, {"retry-after": str(refused.wait)}
    if request.path.startswith(PREFIX):
        answer = problem(status, str(refused), "Refused")
    elif status != 403 and "text/html" in request.header("accept"):
        # Somebody who only opened a page has done nothing wrong yet.
        tried = request.path == LOGIN or request.header("authorization")
        answer = _page(title, request, status, str(refused) if tried else "")
    else:
        answer = WebResponse(status, str(refused).encode(), "text/plain; charset=utf-8")
    answer.headers = headers
    return answer


def _page(title: str, request: WebRequest, status: int, wrong: str = "") -> WebResponse:
    form = request.form
    if request.path == LOGIN:
        back = _checked(form.get("back", ""))
    else:
        kept = {name: value for name, value in request.params.items() if name != "done"}
        back = request.place + request.path[1:] + (f"?{urlencode(kept)}" if kept else "")
    values = {
        "request": request,
        "site": title,
        "assets": asset_version(),
        "wrong": wrong,
        "back": back,
        "name": form.get("name", ""),
    }
    return WebResponse(status, render("sign_in.html", values))


def _checked(back: str) -> str:
    """A page below the mount, or the first one."""
    found = _BACK.fullmatch(back)
    assert found is not None
    place, rest = found[1] or "", found[2]
    return place + checked_back(rest)
