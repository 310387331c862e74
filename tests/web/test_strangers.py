"""What people without a token can cost: no body is read of them, and no connection is theirs for
long."""

import asyncio
import json
import socket
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvicorn
from starlette.testclient import TestClient

from laneway import Queue
from laneway.dev.embedded import free_port
from laneway.web import Dashboard, Dashboards, asgi, server
from laneway.web.asgi import DashboardApp
from laneway.web.assets import asset_version
from laneway.web.dashboard import AnyDashboard
from laneway.web.server import config_of
from tests.web.test_sign_in import started

TOKEN = "a token that is long enough"
BODY = 1024 * 1024


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'queue.db'}") as client:
        client.install()
        yield client


@contextmanager
def serving(pages: AnyDashboard) -> Iterator[int]:
    port = free_port()
    running = uvicorn.Server(config_of(pages, "127.0.0.1", port))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    try:
        yield port
    finally:
        running.should_exit = True
        thread.join(10)


def connected(port: int, sent: bytes = b"") -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=60)
    found.sendall(sent)
    return found


def post(path: str, length: int, *headers: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {length}", *headers)
    return "\r\n".join((*lines, "", "")).encode()


class Body:
    """What an application is sent; counts what it asked for."""

    def __init__(self, size: int = 0) -> None:
        self.parts = [b"x" * 1000] * (size // 1000)
        self.asked = 0

    async def receive(self) -> dict[str, Any]:
        self.asked += 1
        more = self.asked < len(self.parts)
        return {"type": "http.request", "body": self.parts[self.asked - 1], "more_body": more}


async def _call(app: DashboardApp, path: str, body: Body, **headers: str) -> int:
    statuses: list[int] = []

    async def send(message: dict[str, Any]) -> None:
        statuses.append(message.get("status", 0))

    given = {"host": "localhost", **headers}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(n.replace("_", "-").encode(), v.encode()) for n, v in given.items()],
        "client": ("10.0.0.7", 1),
    }
    await app(scope, body.receive, send)
    return statuses[0]


def call(app: DashboardApp, path: str, body: Body, **headers: str) -> int:
    return asyncio.run(_call(app, path, body, **headers))


@pytest.mark.parametrize("path", ["/act", "/api/v1/messages/publish", "/logout", "/nothing"])
@pytest.mark.parametrize("several", [False, True])
def test_no_body_is_read_of_somebody_who_may_not(queue: Queue, path: str, several: bool) -> None:
    pages: Any = Dashboards({"a": queue}, token=TOKEN) if several else Dashboard(queue, token=TOKEN)
    body = Body(BODY)
    where = f"/db/a{path}" if several else path
    assert call(DashboardApp(pages), where, body) == 401
    assert call(DashboardApp(pages), where, body, authorization="Bearer wrong") == 401
    foreign = {"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example"}
    assert call(DashboardApp(pages), where, body, **foreign) == 403
    assert body.asked == 0


def test_a_form_to_sign_in_is_small(queue: Queue) -> None:
    body = Body(BODY)
    assert call(DashboardApp(Dashboard(queue, token=TOKEN)), "/login", body) == 413
    assert body.asked == 5


def test_a_body_of_somebody_who_may_has_a_size_and_a_time(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = DashboardApp(Dashboard(queue, token=TOKEN))
    known = {"authorization": f"Bearer {TOKEN}"}
    assert call(app, "/act", Body(2 * BODY), **known) == 413
    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.1)
    with serving(app.dashboard) as port:
        slow = connected(port, post("/act", 10, f"authorization: Bearer {TOKEN}") + b"verb")
        assert slow.recv(100).startswith(b"HTTP/1.1 408")
        slow.close()


def test_bodies_of_strangers_are_not_kept_in_memory(queue: Queue) -> None:
    with started(queue) as (port, _), ExitStack() as open_ones:
        process = next(
            one
            for one in psutil.Process().children()
            if str(port) in one.cmdline() and "dashboard" in one.cmdline()
        )
        for _ in range(5):
            connected(port, post("/act", 0)).close()
        before = process.memory_info().rss
        for _ in range(100):
            one = connected(port, post("/act", BODY))
            open_ones.callback(one.close)
            assert one.recv(20).startswith(b"HTTP/1.1 401")
            one.settimeout(0.2)
            try:
                one.sendall(b"x" * (BODY - 1))
            except OSError:
                continue  # it is not read
        grown = process.memory_info().rss - before
    assert grown < 40 * BODY, f"{grown / BODY:.0f} MiB for 100 MiB that nobody asked for"


def ends(one: socket.socket) -> bytes:
    """What is sent until the connection is closed."""
    found = b""
    try:
        while part := one.recv(65536):
            found += part
    except ConnectionError:
        pass
    one.close()
    return found


def test_who_sends_no_request_is_not_waited_for(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    line = b"GET /login HTTP/1.1\r\nhost: localhost\r\n"
    with serving(Dashboard(queue, token=TOKEN)) as port:
        assert ends(connected(port)) == b""
        assert ends(connected(port, line)) == b""
        # The second request of a connection, too.
        assert ends(connected(port, line + b"\r\n" + line)).count(b"HTTP/1.1 200") == 1
        # A body that was not asked for ends with its answer.
        assert ends(connected(port, post("/act", 10**9))).startswith(b"HTTP/1.1 401")


def test_headers_have_a_size(queue: Queue) -> None:
    with serving(Dashboard(queue, token=TOKEN)) as port:
        one = connected(port, b"GET / HTTP/1.1\r\nhost: localhost\r\n")
        try:
            for _ in range(1000):
                one.sendall(b"x-more: " + b"x" * 1000 + b"\r\n")
        except OSError:
            pass
        assert ends(one)[:12] in (b"HTTP/1.1 400", b"")
        address = b"GET /?" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n"
        assert ends(connected(port, address))[:12] in (b"HTTP/1.1 400", b"")


def test_connections_have_a_number(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with serving(Dashboard(queue, token=TOKEN)) as port:
        idle = [connected(port) for _ in range(3)]
        assert ends(connected(port)).startswith(b"HTTP/1.1 503")
        for one in idle:
            one.close()
        asked = b"GET /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        while not ends(connected(port, asked)).startswith(b"HTTP/1.1 200"):
            time.sleep(0.1)  # until the server has seen that they are gone


def test_who_does_not_read_the_answers_is_not_waited_for(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.3)
    path = f"/static/{asset_version()}/vendor/htmx.min.js"
    asked = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    with serving(Dashboard(queue, token=TOKEN)) as port:
        one = connected(port, asked * 400)
        assert one.recv(5) == b"HTTP/"
        mine = psutil.Process()

        def held() -> bool:
            ends_here = [c for c in mine.net_connections("tcp") if c.laddr and c.laddr.port == port]
            return any(c.status == psutil.CONN_ESTABLISHED for c in ends_here)

        while held():  # the test's own time ends it
            time.sleep(0.1)
        one.close()
        # Who reads, slowly, gets all of it.
        slow = connected(
            port, asked * 40 + asked.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        )
        found = 0
        while part := slow.recv(65536):
            found += len(part)
            time.sleep(0.01)
        slow.close()
        assert found > 41 * 40_000


@pytest.mark.parametrize("depth", [200, 900, 5000, 100_000])
def test_json_that_is_nested_deeply_is_refused(queue: Queue, depth: int) -> None:
    """In a body, as a field of one, and in a position of a list."""
    client = TestClient(
        DashboardApp(Dashboard(queue, insecure=True)), raise_server_exceptions=False
    )
    nested = "[" * depth + "]" * depth
    kind = {"content-type": "application/json"}
    publish = "/api/v1/messages/publish"
    for body in (nested, f'{{"payload": {nested}}}', f'{{"channel": {nested}}}', '{"a":' * depth):
        answer = client.post(publish, content=body, headers=kind)
        assert answer.status_code == 400, answer.text
        assert json.loads(answer.text)["error"]["message"]
    form = {"verb": "publish", "payload": nested, "headers": nested}
    assert client.post("/act", data=form).status_code in (400, 413)
    after = urlsafe_b64encode(nested.encode()).decode()[:12_000]
    assert client.get(f"/api/v1/dead-letters?after={after}").status_code == 400
    assert client.get(f"/dead-letters?after={after}").status_code == 400
