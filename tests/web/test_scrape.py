"""The dashboard answers a scrape too, to whoever may see all channels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway import Queue
from laneway.operator import VIEWER, Principal
from laneway.web import Dashboard
from laneway.web.request import WebRequest, WebResponse
from tests.exporter.scraped import Scraped


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'scrape.db'}") as client:
        client.install()
        yield client


def scrape(queue: Queue, principal: Principal | None) -> WebResponse:
    made = Dashboard(queue, principal=lambda request: principal)
    try:
        return made.respond(WebRequest("GET", "/metrics", "", {"host": "x"}, b"", "10.1.1.1"))
    finally:
        made.close()


def test_metrics_of_the_dashboard(queue: Queue) -> None:
    queue.publish(1)
    response = scrape(queue, Principal("prometheus", VIEWER))
    assert response.status == 200 and response.content_type.startswith("text/plain")
    found = Scraped(response.body.decode())
    assert found("laneway_up") == 1
    assert found("laneway_messages", queue="default", state="waiting") == 1


def test_whoever_sees_only_some_channels_gets_none(queue: Queue) -> None:
    scoped = Principal("ann", VIEWER, channel_prefixes=("tenant-1/",))
    for principal in (None, scoped, Principal("bob", frozenset())):
        assert scrape(queue, principal).status == 403
