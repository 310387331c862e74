"""Who is let in, and what another site's page can do: nothing."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from laneway import Queue
from laneway.errors import ConnectionUnavailable, InvalidOption
from laneway.operator import OPERATOR, VIEWER, Principal, Right
from laneway.web import Dashboard
from laneway.web.cache import SharedCache
from laneway.web.request import WebRequest, WebResponse
from laneway.web.server import serve

TOKEN = "a token that is long enough"


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'access.db'}") as client:
        client.install()
        yield client


def get(
    pages: Dashboard, path: str = "/", client: str = "127.0.0.1", **headers: str
) -> WebResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return pages.respond(WebRequest("GET", path, headers=given, client=client))


def post(pages: Dashboard, body: str, **headers: str) -> WebResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return pages.respond(
        WebRequest("POST", "/act", headers=given, body=body.encode(), client="127.0.0.1")
    )


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("127.0.0.1", {"host": "localhost:8400"}, 200),
        ("127.0.0.1", {"host": "127.0.0.1"}, 200),
        ("::1", {"host": "[::1]:8400"}, 200),
        ("10.0.0.7", {"host": "127.0.0.1"}, 403),
        # A name of an attacker that points to this machine.
        ("127.0.0.1", {"host": "evil.example:8400"}, 403),
        ("127.0.0.1", {}, 403),
        # A proxy on this machine: everybody would be local.
        ("127.0.0.1", {"host": "localhost", "x_forwarded_for": "10.0.0.7"}, 403),
        ("127.0.0.1", {"host": "localhost", "forwarded": "for=10.0.0.7"}, 403),
    ],
)
def test_without_a_credential_only_this_machine_is_let_in(
    queue: Queue, client: str, headers: dict[str, str], status: int
) -> None:
    assert get(Dashboard(queue, trust_local=True), client=client, **headers).status == status


def test_a_token_is_asked_for(queue: Queue) -> None:
    pages = Dashboard(queue, token=TOKEN)
    assert get(pages, host="localhost").status == 401
    assert get(pages, client="10.0.0.7", authorization=f"Bearer {TOKEN}").status == 200
    basic = b64encode(f"ann:{TOKEN}".encode()).decode()
    assert b"ann" in get(pages, client="10.0.0.7", authorization=f"Basic {basic}").body
    for wrong in ("Bearer nearly", "Basic !!", f"Basic {b64encode(b'ann:no').decode()}", "Digest"):
        answer = get(pages, "/api/v1/queues", authorization=wrong)
        assert answer.status == 401
        assert "Bearer" in answer.headers["www-authenticate"]
        assert json.loads(answer.body)["error"]


def test_a_hook_decides(queue: Queue) -> None:
    def who(request: Any) -> Principal | None:
        return None if request is None else Principal("ann", VIEWER)

    pages = Dashboard(queue, principal=who)
    assert get(pages, host="localhost").status == 403
    request = WebRequest("GET", "/", native="a request of the framework", client="10.0.0.7")
    assert pages.respond(request).status == 200


@pytest.mark.parametrize(
    ("headers", "fine"),
    [
        ({}, True),  # no browser
        ({"sec_fetch_site": "same-origin", "origin": "http://localhost"}, True),
        ({"sec_fetch_site": "cross-site", "origin": "http://evil.example"}, False),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "none"}, False),
        ({"origin": "http://localhost"}, True),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
    ],
)
def test_other_sites_cannot_act(queue: Queue, headers: dict[str, str], fine: bool) -> None:
    pages = Dashboard(queue, trust_local=True)
    answer = post(pages, "verb=pause_channel&channel=a", host="localhost", **headers)
    assert answer.status == (303 if fine else 403)
    assert queue.channel("a").policy().paused is fine


@pytest.mark.parametrize(
    "back", ["https://evil.example", "//evil.example", "/\\evil", "a:b", "act\n"]
)
def test_an_action_does_not_lead_to_another_site(queue: Queue, back: str) -> None:
    answer = post(
        Dashboard(queue, trust_local=True),
        f"verb=pause_channel&channel=a&back={back}",
        host="localhost",
    )
    assert answer.headers["location"].startswith("./?done=")


def test_read_only_changes_nothing(queue: Queue) -> None:
    pages = Dashboard(queue, trust_local=True, read_only=True)
    assert post(pages, "verb=pause_channel&channel=a", host="localhost").status == 403
    assert not queue.channel("a").policy().paused
    assert b"read-only" in get(pages, host="localhost").body


def test_results_are_of_one_person_and_cannot_be_forged(queue: Queue) -> None:
    pages = Dashboard(queue, trust_local=True)
    answer = post(pages, "verb=pause_channel&channel=a&back=channels", host="localhost")
    mark = answer.headers["location"].partition("done=")[2]

    def shown(value: str, board: Dashboard) -> bool:
        request = WebRequest(
            "GET", "/channels", f"done={value}", {"host": "localhost"}, client="::1"
        )
        return b"is paused" in board.respond(request).body

    assert shown(mark, pages)
    assert shown(mark, Dashboard(queue, trust_local=True)), "another process"
    assert not shown(mark[:-4] + "AAAA", pages)
    other = Dashboard(queue, principal=lambda request: Principal("bob", OPERATOR))
    assert not shown(mark, other)


def test_a_messages_page_shows_what_was_done_apart_from_what_its_handler_returned(
    queue: Queue,
) -> None:
    pages = Dashboard(queue, trust_local=True)
    number = queue.publish(1, keep_result=3600).id
    queue.claim(1)[0].complete(result="forty-two")
    answer = post(pages, "verb=pause_channel&channel=a&back=channels", host="localhost")
    done = answer.headers["location"].partition("?")[2]
    for query, notices in (("", 0), (done, 1)):
        request = WebRequest(
            "GET", f"/messages/{number}", query, {"host": "localhost"}, client="::1"
        )
        body = pages.respond(request).body
        assert body.count(b"forty-two") == 1
        assert body.count(b'id="result"') == body.count(b"is paused") == notices


def test_a_messages_page_shows_what_its_handler_saved(queue: Queue) -> None:
    number = queue.publish(1).id
    queue.claim(1)[0].defer(delay=0, state={"page": "seven"})
    request = WebRequest("GET", f"/messages/{number}", "", {"host": "localhost"}, client="::1")
    assert b"seven" in Dashboard(queue, trust_local=True).respond(request).body
    viewer = Dashboard(queue, principal=lambda _: Principal("ann", frozenset({Right.VIEW})))
    assert b"seven" not in viewer.respond(request).body


def test_every_answer_tells_browsers_to_be_strict(queue: Queue) -> None:
    pages = Dashboard(queue, trust_local=True)
    for path in ("/", "/nothing", "/static/x/none.js", "/api/v1/queues", "/messages/1"):
        headers = get(pages, path, host="localhost").headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_an_open_address_needs_a_credential(queue: Queue) -> None:
    with pytest.raises(InvalidOption, match="--token"):
        serve(Dashboard(queue, trust_local=True), "0.0.0.0", 8400)
    with pytest.raises(InvalidOption, match="too short"):
        Dashboard(queue, token="short")


def test_a_hundred_viewers_ask_the_database_once() -> None:
    cache = SharedCache()
    calls: list[int] = []
    start = Barrier(100)

    def load() -> str:
        calls.append(1)
        return "numbers"

    def view() -> None:
        start.wait()
        assert cache.get("stats", load).value == "numbers"

    threads = [Thread(target=view) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_the_last_answer_is_shown_while_the_database_is_away() -> None:
    cache = SharedCache(keep=0)

    def fail() -> str:
        raise ConnectionUnavailable("the server is away")

    with pytest.raises(ConnectionUnavailable):
        cache.get("stats", fail)
    cache.get("stats", lambda: "numbers")
    seen = cache.get("stats", fail)
    assert (seen.value, seen.error) == ("numbers", "the server is away")
    assert cache.get("stats", lambda: "newer").error is None
