"""The API: every verb has an address, and the description of it all is valid."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from laneway import Queue
from laneway.errors import InvalidOption
from laneway.limits import Adapt, Breaker
from laneway.operator import VERBS
from laneway.shared_limits import SETTINGS
from laneway.web import Dashboard
from laneway.web.api import NOT_SERVED, api_routes
from laneway.web.pages import PAGES
from laneway.web.request import WebRequest, WebResponse

LOCAL = {"host": "127.0.0.1:8400"}


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'api.db'}") as client:
        client.install()
        yield client


@pytest.fixture
def pages(queue: Queue) -> Iterator[Dashboard]:
    made = Dashboard(queue, trust_local=True)
    yield made
    made.close()


def ask(pages: Dashboard, method: str, path: str, body: Any = None) -> WebResponse:
    path, _, query = path.partition("?")
    headers = {**LOCAL, "content-type": "application/json"}
    raw = b"" if body is None else json.dumps(body).encode()
    return pages.respond(WebRequest(method, path, query, headers, raw, "127.0.0.1"))


def answer(pages: Dashboard, method: str, path: str, body: Any = None) -> Any:
    response = ask(pages, method, path, body)
    assert response.status == 200, response.body
    return json.loads(response.body)


def test_every_verb_has_one_address() -> None:
    assert {route.verb for route in api_routes()} == set(VERBS) - NOT_SERVED
    addresses = [(route.method, route.path) for route in api_routes()]
    assert len(set(addresses)) == len(addresses)


def test_the_description_is_valid(pages: Dashboard) -> None:
    description = answer(pages, "GET", "/api/v1/openapi.json")
    validate(description)
    operations = [o["operationId"] for path in description["paths"].values() for o in path.values()]
    assert sorted(operations) == sorted(set(VERBS) - NOT_SERVED)


def test_messages_channels_and_dead_letters(pages: Dashboard, queue: Queue) -> None:
    first = queue.publish({"n": 1}, channel="a/b", kind="job", max_attempts=1).id
    later = queue.publish({"n": 2}, channel="later", delay=60).id
    (row,) = answer(pages, "GET", "/api/v1/queues")["data"]
    assert (row["waiting"], row["scheduled"]) == (1, 1)
    page = answer(pages, "GET", "/api/v1/messages?limit=1")
    assert ([m["id"] for m in page["data"]], page["next"]) == ([first], first)
    page = answer(pages, "GET", f"/api/v1/messages?limit=1&after={page['next']}")
    assert [m["id"] for m in page["data"]] == [later]
    assert answer(pages, "GET", f"/api/v1/messages/{first}/payload")["data"] == {"text": '{"n":1}'}
    queue.claim()[0].fail(reason="no")
    pages.cache.clear()
    (letter,) = answer(pages, "GET", "/api/v1/dead-letters")["data"]
    assert letter["reason"] == "no"
    assert answer(pages, "POST", "/api/v1/dead-letters/redrive", {"ids": [first]})["data"] == 1
    limits = {"channel": "a/b", "concurrency": 2, "rate": None}
    assert answer(pages, "POST", "/api/v1/channels/limit", limits)["data"]["concurrency"] == 2
    assert answer(pages, "GET", "/api/v1/channel?channel=a/b")["data"]["policy"]["concurrency"] == 2


def test_a_shared_limit_with_bounds_and_a_breaker(pages: Dashboard, queue: Queue) -> None:
    description = answer(pages, "GET", "/api/v1/openapi.json")
    operation = description["paths"]["/set-shared-limit"]["post"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"name", *SETTINGS}
    rule = {"failures": 0.2, "window": "1m", "minimum": 20, "pause": 120}
    given = {"name": "bank", "adapt_min": 2, "adapt_max": 9, **rule}
    made = answer(pages, "POST", "/api/v1/set-shared-limit", given)["data"]
    assert made["adapt"] == {"min": 2, "max": 9} and made["breaker"]["minimum"] == 20
    found = queue.limits["bank"].get()
    assert (found.adapt, found.breaker) == (Adapt(2, 9), Breaker(0.2, 60, 20, 120))
    (entry,) = queue.audit()
    noted = {**given, "window": 60}
    assert (entry.source, entry.target["name"]) == ("api", noted.pop("name"))
    assert entry.target["limits"] == noted
    none = {"name": "bank", "adapt_min": None, "failures": None}
    answer(pages, "POST", "/api/v1/set-shared-limit", none)
    assert not queue.limits["bank"].get().limited


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/nothing", None, 404),
        ("POST", "/api/v1/queues", {}, 404),
        ("GET", "/api/v1/messages?limit=many", None, 400),
        ("GET", "/api/v1/messages?colour=red", None, 400),
        ("GET", "/api/v1/messages?state=lost", None, 400),
        ("GET", "/api/v1/channel", None, 400),
        ("GET", "/api/v1/dead-letters?after=zzz", None, 400),
        ("GET", "/api/v1/dead-letters?since=2026-01-01T00:00", None, 400),
        ("POST", "/api/v1/channels/limit", [], 400),
        ("POST", "/api/v1/channels/limit", {"channel": "a", "rate": "fast"}, 400),
        ("POST", "/api/v1/set-shared-limit", {"name": "a", "adapt_min": 2}, 400),
        ("POST", "/api/v1/set-shared-limit", {"name": "a", "failures": 50}, 400),
        ("POST", "/api/v1/schedules/run", {"name": "none"}, 404),
    ],
)
def test_mistakes_are_explained(
    pages: Dashboard, method: str, path: str, body: Any, status: int
) -> None:
    response = ask(pages, method, path, body)
    assert response.status == status
    assert json.loads(response.body)["error"]["message"]


def test_lists_continue_where_they_ended(pages: Dashboard, queue: Queue) -> None:
    for number in range(5):
        queue.publish(number, max_attempts=1)
    for message in queue.claim(limit=5):
        message.fail(reason="no")
    seen: list[int] = []
    after = ""
    while True:
        page = answer(pages, "GET", f"/api/v1/dead-letters?limit=2{after}")
        seen += [letter["id"] for letter in page["data"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert len(seen) == len(set(seen)) == 5


def test_what_is_redacted_on_pages_is_redacted_here(queue: Queue) -> None:
    """Every address that tells of a payload, an error or headers."""
    secret = "4111-1111"
    queue.publish({"card": secret}, kind="pay", headers={"card": secret}, max_attempts=1)
    try:
        raise ValueError(f"card {secret} was refused")
    except ValueError as error:
        queue.claim(1)[0].fail("refused", error=error)
    queue.publish({"card": secret}, headers={"card": secret}, kind="pay")
    pages = Dashboard(
        queue, trust_local=True, redact=lambda what, text: text.replace(secret, f"<{what}>")
    )
    paths = ["messages", "messages/1", "messages/2", "messages/1/payload", "messages/1/history"]
    paths += ["messages/2/payload", "dead-letters", "dead-letters/groups", "dead-letters/preview"]
    try:
        told = {path: str(answer(pages, "GET", f"/api/v1/{path}?")) for path in paths[:-1]}
        told["preview"] = str(answer(pages, "GET", "/api/v1/dead-letters/preview?queue=default"))
        told["page"] = ask(pages, "GET", "/messages/1").body.decode()
        (letter,) = answer(pages, "GET", "/api/v1/dead-letters")["data"]
    finally:
        pages.close()
    assert [path for path, text in told.items() if secret in text] == []
    assert letter["headers"] == {"card": "<headers>"} and "<error>" in letter["traceback"]
    assert "<payload>" in told["messages/1/payload"]


def test_a_trace_is_linked_where_the_tracing_system_is_known(queue: Queue) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    queue.publish(1, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    pages = Dashboard(queue, trust_local=True, trace_url="https://traces.example/?id={trace}")
    try:
        page = ask(pages, "GET", "/messages/1").body.decode()
    finally:
        pages.close()
    assert f'<a href="https://traces.example/?id={trace}">' in page
    for wrong in ("javascript:alert(1)//{trace}", "https://traces.example/"):
        with pytest.raises(InvalidOption):
            Dashboard(queue, trust_local=True, trace_url=wrong)


def test_payloads_are_in_no_list(pages: Dashboard, queue: Queue) -> None:
    """Of nobody, whatever they may: every address that reads and every page without an id."""
    secret = "never-in-a-list"
    queue.publish({"card": secret}, kind="dies", keep_result=3600)
    queue.claim(1)[0].fail("no")
    for kind in ("waits", "runs"):
        queue.publish({"card": secret}, kind=kind)
    queue.claim(1)[0].progress(0.5)
    queue.schedule("nightly", {"card": secret}, every=3600)
    with queue.flow("import") as flow:
        flow.add({"card": secret}, after=flow.add({"card": secret}))
    given = {"channel": "channel=default", "dead_nodes": "flow_id=1", "schedule": "name=nightly"}
    lists = [route for route in api_routes() if route.method == "GET" and "{" not in route.path]
    for route in lists:
        found = ask(pages, "GET", f"/api/v1/{route.path}?{given.get(route.verb, '')}")
        assert (secret.encode() in found.body) is (route.verb == "schedule"), route.path
    for path in ("flows/1/nodes", "flows/1", "messages/2", "messages/2/history"):
        assert secret.encode() not in ask(pages, "GET", f"/api/v1/{path}").body, path
    for path in (*PAGES, "/dead-letters/bulk?action=discard"):
        assert secret.encode() not in ask(pages, "GET", path).body, path
    (letter,) = answer(pages, "GET", "/api/v1/dead-letters")["data"]
    assert "payload" not in letter, "one that is left out looks like none that is empty"
    one = answer(pages, "GET", f"/api/v1/messages/{letter['id']}/payload")["data"]
    assert secret in one["text"]
