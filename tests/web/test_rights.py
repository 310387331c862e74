"""Each right and each verb, over the page and over the API: done, or refused before it is done."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from laneway import Queue
from laneway.operator import ADMIN, VERBS, Principal, Right
from laneway.web import Dashboard
from laneway.web.api import NOT_SERVED, api_routes
from laneway.web.request import WebRequest

SERVED = sorted(set(VERBS) - NOT_SERVED)
HEADERS = {"host": "localhost", "content-type": "application/json"}
# What a verb is called with; the others need nothing, or are only asked whether they refuse.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "channel": {"channel": "tenant-1"},
    "limit": {"channel": "tenant-1", "concurrency": 3},
    "set_shared_limit": {"name": "bank", "adapt_min": 2, "adapt_max": 9, "failures": 0.5},
    "remove_shared_limit": {"name": "bank"},
    "pause_channel": {"channel": "tenant-1"},
    "resume_channel": {"channel": "tenant-1"},
    "remove_channel": {"channel": "tenant-1"},
    "configure": {"history_days": 7},
    "cancel": {"ids": [1]},
    "run_now": {"ids": [1]},
    "publish": {"payload": {"n": 1}},
    "redrive": {"ids": [1]},
    "discard": {"ids": [1]},
    "count_dead_letters": {"queue": "default"},
    "schedule": {"name": "nightly"},
    "pause_schedule": {"name": "nightly"},
    "resume_schedule": {"name": "nightly"},
    "run_schedule": {"name": "nightly"},
    "remove_schedule": {"name": "nightly"},
    "subscribe": {"topic": "orders"},
    "unsubscribe": {"topic": "orders"},
    "cancel_flow": {"flow_id": 1},
    "redrive_flow": {"flow_id": 1},
}


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path_factory.mktemp('rights') / 'queue.db'}") as client:
        client.install()
        client.publish({"secret": "s3cret"}, channel="tenant-1")
        with client.flow("import", channel="tenant-1") as flow:
            flow.add({"secret": "s3cret"}, delay=3600)
        yield client


@pytest.fixture(scope="module")
def pages(queue: Queue) -> Iterator[Dashboard]:
    """The framework's request is the principal itself."""
    made = Dashboard(queue, principal=lambda principal: principal)
    yield made
    made.close()


def call(pages: Dashboard, verb: str, who: Principal) -> tuple[int, Any]:
    """Over the API."""
    (route,) = [route for route in api_routes() if route.verb == verb]
    given, path = ARGUMENTS.get(verb, {}), re.sub(r"{\w+}", "1", route.path)
    query = urlencode(given) if route.method == "GET" else ""
    body = json.dumps(given).encode() if route.method == "POST" else b""
    request = WebRequest(route.method, f"/api/v1/{path}", query, HEADERS, body, "10.0.0.7", who)
    answer = pages.respond(request)
    return answer.status, json.loads(answer.body)


def press(pages: Dashboard, verb: str, who: Principal) -> int:
    """Over the page."""
    fields = {
        name: ",".join(map(str, value)) if isinstance(value, list) else value
        for name, value in ARGUMENTS.get(verb, {}).items()
    }
    body = urlencode({"verb": verb, "sure": "yes", **fields}).encode()
    headers = {"host": "localhost"}
    return pages.respond(WebRequest("POST", "/act", "", headers, body, "10.0.0.7", who)).status


@pytest.mark.parametrize("verb", SERVED)
def test_a_verb_needs_exactly_its_right(pages: Dashboard, queue: Queue, verb: str) -> None:
    queue.schedule("nightly", every=timedelta(days=1))
    entry = VERBS[verb]
    for right in Right:
        only = Principal("only", frozenset({right}))
        without = Principal("without", ADMIN - {right})
        for who, allowed in ((only, right is entry.right), (without, right is not entry.right)):
            status, answer = call(pages, verb, who)
            assert (status != 403) is allowed, (right, answer)
            assert status < 500, answer
            if entry.acts:
                assert (press(pages, verb, who) != 403) is allowed, right
            queue.schedule("nightly", every=timedelta(days=1))


@pytest.mark.parametrize("verb", SERVED)
def test_a_hidden_channel_is_neither_shown_nor_touched(
    pages: Dashboard, queue: Queue, verb: str
) -> None:
    scoped = Principal("scoped", ADMIN, channel_prefixes=("other-",))
    before = queue.channel("tenant-1").policy(), queue.message(1), queue.settings()
    _, answer = call(pages, verb, scoped)
    assert "tenant-1" not in json.dumps(answer).replace("channel 'tenant-1' is hidden", "")
    assert "s3cret" not in json.dumps(answer)
    if VERBS[verb].acts:
        press(pages, verb, scoped)
    assert (queue.channel("tenant-1").policy(), queue.message(1), queue.settings()) == before


def test_pages_show_a_scoped_viewer_only_its_channels(pages: Dashboard, queue: Queue) -> None:
    queue.publish(1, channel="other-1")
    scoped = Principal("scoped", ADMIN, channel_prefixes=("other-",))
    for path in ("/", "/queue", "/channels", "/messages", "/dead-letters", "/limits", "/system"):
        request = WebRequest("GET", path, "", {"host": "localhost"}, b"", "10.0.0.7", scoped)
        answer = pages.respond(request)
        assert answer.status == 200, path
        assert b"tenant-1" not in answer.body, path
    request = WebRequest("GET", "/messages/1", "", {"host": "x"}, b"", "10.0.0.7", scoped)
    assert pages.respond(request).status == 404


def test_a_file_of_the_package_is_what_its_manifest_says() -> None:
    from hashlib import sha256

    folder = Path(__file__).parents[2] / "src/laneway/web/static/vendor"
    manifest = json.loads((folder / "manifest.json").read_text())
    listed = {entry["file"] for entry in manifest} | {entry["licence_file"] for entry in manifest}
    assert {file.name for file in folder.iterdir()} == listed | {"manifest.json"}
    for entry in manifest:
        assert sha256((folder / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]
