"""The dashboard asks for a token unless it is told not to: also of whoever comes through a proxy on
this machine, and without leaving the token where it can be read."""

import http.client
import json
import logging
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser

from laneway import Queue
from laneway.dev.embedded import free_port
from laneway.errors import InvalidOption
from laneway.web import Dashboard, Dashboards, Principal, dashboard
from laneway.web import guesses as wrong_tokens
from laneway.web.request import WebRequest, WebResponse
from tests.web.browser import serving
from tests.web.reverse_proxy import reverse_proxy
from tests.web.test_browser import browser  # noqa: F401, a fixture

TOKEN = "a token that is long enough"


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'queue.db'}") as client:
        client.install()
        yield client


@contextmanager
def started(queue: Queue, *options: str) -> Iterator[tuple[int, str]]:
    """``laneway dashboard`` on its own: the port, and the address that it told to open."""
    port = free_port()
    command = [sys.executable, "-m", "laneway.cli", "dashboard", "--port", str(port)]
    command += ["--url", queue._address.url, *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        _wait(port)
        yield port, found[0]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "token=" not in errors


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=60).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("it does not listen")


def ask(
    port: int, path: str, form: dict[str, str] | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if form is not None:
        given |= {"content-type": "application/x-www-form-urlencoded"}
    body = None if form is None else urlencode(form)
    connection.request("GET" if form is None else "POST", path, body, given)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_a_proxy_on_this_machine_makes_nobody_an_administrator(queue: Queue) -> None:
    """nginx's default: the Host is rewritten to ours, and no header tells of the proxy."""
    with started(queue) as (port, address), reverse_proxy(port) as front:
        for open_port in (port, front):
            assert ask(open_port, "/")[0].status == 401
            assert ask(open_port, "/api/v1/queues")[0].status == 401
            pause = {"verb": "pause_channel", "channel": "a"}
            assert ask(open_port, "/act", pause)[0].status == 401
        assert not queue.channel("a").policy().paused
        parts = urlsplit(address)
        assert (parts.path, parts.query) == ("/login", ""), "what is behind the # is sent to nobody"
        token = parts.fragment.removeprefix("token=")
        answer, _ = ask(front, "/login", {"token": token, "name": "ann", "back": "channels"})
        assert (answer.status, answer.headers["location"]) == (303, "./channels")
        cookie = answer.headers["set-cookie"]
        assert token not in cookie
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        signed_in = cookie.partition(";")[0]
        answer, body = ask(front, "/", cookie=signed_in)
        assert answer.status == 200
        assert b"ann" in body
        assert b"Sign out" in body
        assert ask(front, "/act", pause, cookie=signed_in)[0].status == 303
    assert queue.channel("a").policy().paused


def test_who_is_let_in_has_to_be_said(queue: Queue) -> None:
    with pytest.raises(InvalidOption, match=r"principal=.*token=.*trust_local=True"):
        Dashboard(queue)


def test_this_machine_is_trusted_if_that_is_said(queue: Queue) -> None:
    with started(queue, "--trust-local") as (port, address):
        assert address == f"http://127.0.0.1:{port}/"
        assert ask(port, "/")[0].status == 200
        assert ask(port, "/", host="ops.example")[0].status == 403


def get(pages: Dashboard | Dashboards, path: str = "/", **headers: str) -> WebResponse:
    return pages.respond(WebRequest("GET", path, headers=headers, client="10.0.0.7"))


def sign_in(
    pages: Dashboard | Dashboards, token: str, client: str = "10.0.0.7", **more: str
) -> WebResponse:
    origin = more.pop("origin", "http://here")
    body = urlencode({"token": token, **more}).encode()
    request = WebRequest("POST", "/login", headers={"origin": origin}, body=body, client=client)
    return pages.respond(request)


def cookie_of(answer: WebResponse) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


def test_people_get_a_page_and_programs_an_error(queue: Queue) -> None:
    pages = Dashboard(queue, token=TOKEN)
    page = get(pages, "/channels", accept="text/html,*/*")
    assert page.status == 401
    assert b'action="./login"' in page.body
    assert b'value="channels"' in page.body, "where to go on"
    assert b'role="alert"' not in page.body
    answer = get(pages, "/api/v1/queues", accept="text/html")
    assert answer.content_type == "application/json"
    for refused in (page, answer, get(pages)):
        # Basic would have browsers ask in a window of their own.
        assert refused.headers["www-authenticate"].startswith("Bearer")


def test_a_session_is_signed_and_ends(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = Dashboard(queue, token=TOKEN)
    answer = sign_in(pages, TOKEN)
    cookie = cookie_of(answer)
    assert "Secure" not in answer.headers["set-cookie"]
    assert "; Secure" in sign_in(pages, TOKEN, origin="https://here").headers["set-cookie"]
    assert get(pages, cookie=f"other=[1]; {cookie}").status == 200
    assert get(Dashboard(queue, token=TOKEN), cookie=cookie).status == 200, "another process"
    name, _, value = cookie.partition("=")
    for forged in (f"{name}=", f"{name}=x.y", f"{name}=é.é", f"{name}=A{value[1:]}", f"x={value}"):
        assert get(pages, cookie=forged).status == 401
    assert get(Dashboard(queue, token=TOKEN + "!"), cookie=cookie).status == 401
    request = WebRequest("POST", "/logout", headers={"cookie": cookie}, client="10.0.0.7")
    assert "Max-Age=0" in pages.respond(request).headers["set-cookie"]
    monkeypatch.setattr("laneway.web.sessions.time.time", lambda: 4e9)
    assert get(pages, cookie=cookie).status == 401


@pytest.mark.parametrize(
    ("back", "location"),
    [
        ("messages/1", "./messages/1"),
        ("db/eu-1/channels?queue=a", "./db/eu-1/channels?queue=a"),
        ("//evil.example", "./"),
        ("https://evil.example", "./"),
        ("a:b", "./"),
        ("db/x//evil.example", "./db/x/"),
    ],
)
def test_signing_in_leads_to_no_other_site(queue: Queue, back: str, location: str) -> None:
    pages = Dashboard(queue, token=TOKEN)
    assert sign_in(pages, TOKEN, back=back).headers["location"] == location


def test_one_sign_in_is_for_all_databases(tmp_path: Path) -> None:
    with (
        Queue(f"sqlite:///{tmp_path / 'one.db'}") as one,
        Queue(f"sqlite:///{tmp_path / 'two.db'}") as two,
    ):
        one.install()
        two.install()
        pages = Dashboards({"one": one, "two": two}, token=TOKEN)
        page = get(pages, "/db/two/messages/1", accept="text/html")
        assert page.status == 401
        assert b'action="../../../login"' in page.body
        assert b'value="db/two/messages/1"' in page.body
        cookie = cookie_of(sign_in(pages, TOKEN))
        for path in ("/", "/db/one/", "/db/two/channels"):
            answer = get(pages, path, cookie=cookie)
            assert answer.status == 200
            assert b"logout" in answer.body
        pages.close()


def test_guessing_ends_soon_and_is_logged(
    queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = Dashboard(queue, token=TOKEN)
    signed_in = cookie_of(sign_in(pages, TOKEN))
    with caplog.at_level(logging.WARNING, "laneway.web"):
        statuses = [sign_in(pages, f"guess {n}").status for n in range(50)]
    assert statuses == [401] * wrong_tokens.MOST_OF_ONE + [429] * (50 - wrong_tokens.MOST_OF_ONE)
    assert len(caplog.messages) == wrong_tokens.MOST_OF_ONE + 1
    assert all("10.0.0.7" in line and "guess" not in line for line in caplog.messages)
    # Not even the right one is looked at, in whatever way it comes.
    answer = get(pages, "/api/v1/queues", authorization=f"Bearer {TOKEN}")
    assert answer.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert json.loads(answer.body)["error"]["type"] == "Refused"
    assert get(pages, cookie=signed_in).status == 200, "who signed in before works on"
    assert sign_in(pages, TOKEN, client="10.0.0.8").status == 303
    # Many addresses together are limited too.
    for n in range(wrong_tokens.MOST):
        sign_in(pages, "a guess", client=f"10.0.1.{n}")
    assert sign_in(pages, TOKEN, client="10.0.0.9").status == 429
    later = time.monotonic() + wrong_tokens.WINDOW
    monkeypatch.setattr("laneway.web.guesses.time.monotonic", lambda: later)
    assert sign_in(pages, TOKEN).status == 303


def test_a_hook_knows_no_sign_in(queue: Queue) -> None:
    pages = Dashboard(queue, principal=lambda request: Principal("ann"))
    assert get(pages, "/login").status == 404
    assert b"Sign out" not in get(pages).body


class Recorder:
    """An application, and every address and header that it was sent."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.sent = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.sent += f"{scope.get('path')}?{scope.get('query_string')} {scope.get('headers')}\n"
        await self._app(scope, receive, send)


def test_the_link_signs_a_browser_in_and_leaves_no_token(
    browser: Browser,  # noqa: F811
    queue: Queue,
) -> None:
    app = Recorder(dashboard(queue, token=TOKEN))
    context = browser.new_context()
    page = context.new_page()
    with serving(app) as base:
        page.goto(f"{base}/login#token={quote(TOKEN)}")
        page.wait_for_selector("text=Sign out")
        assert page.url == f"{base}/"
        (cookie,) = context.cookies()
        assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Lax")
        page.click("nav >> text=Channels")
        page.go_back()
        page.go_back()
        assert "token" not in page.url
        page.goto(f"{base}/channels")
        page.click("text=Sign out")
        page.wait_for_selector("h1:text-is('Sign in')")
        context.close()
    for shown in (TOKEN, quote(TOKEN), quote(TOKEN, safe="")):
        assert shown not in app.sent


def test_signing_in_needs_no_script(browser: Browser, queue: Queue) -> None:  # noqa: F811
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    with serving(dashboard(queue, token=TOKEN)) as base:
        page.goto(f"{base}/channels?search=a")
        page.fill("[name=token]", "a guess of somebody")
        page.fill("[name=name]", "ann")
        page.click("button:text-is('Sign in')")
        assert page.inner_text("[role=alert]") == "That is not the token."
        page.fill("[name=token]", TOKEN)
        page.click("button:text-is('Sign in')")
        assert page.url == f"{base}/channels?search=a"
        assert page.inner_text(".who .name") == "ann"
        context.close()
