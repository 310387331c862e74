"""One console for several databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway import Queue
from laneway.errors import InvalidOption
from laneway.operator import VIEWER, Principal
from laneway.web import Dashboards
from laneway.web.request import WebRequest, WebResponse

TOKEN = "a token that is long enough"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Dashboards]:
    queues = {
        "eu-1": Queue(f"sqlite:///{tmp_path}/1.db"),
        "eu 2/<b>": Queue(f"sqlite:///{tmp_path}/2.db"),
        "gone": Queue("postgresql://127.0.0.1:1/nothing", call_timeout=1),
    }
    for number, name in enumerate(list(queues)[:2], 1):
        queues[name].install()
        queues[name].publish_many(range(number), channel=f"tenant-{number}")
    made = Dashboards(queues, insecure=True)
    yield made
    made.close()
    for queue in queues.values():
        queue.close()


def get(pages: Dashboards, path: str, **headers: str) -> WebResponse:
    return pages.respond(WebRequest("GET", path, headers=headers, client="127.0.0.1"))


def test_the_first_page_shows_all_and_names_the_one_that_is_away(pages: Dashboards) -> None:
    for _ in range(2):
        answer = get(pages, "/")
        text = answer.body.decode()
        assert answer.status == 200
        assert "<b>gone</b> is away since 20" in text
        assert "eu-1</b> is away" not in text
        assert 'href="./db/eu-1/"' in text and 'href="./db/eu-2-b/"' in text
        assert "eu 2/&lt;b&gt;" in text and "<b>eu 2" not in text
        assert "Those that answer" in text and ">3</span>" in text, "the sum"


def test_each_database_has_its_own_pages(pages: Dashboards) -> None:
    assert get(pages, "/db/eu-1").headers["location"] == "eu-1/"
    first = get(pages, "/db/eu-1/channels").body.decode()
    assert "tenant-1" in first and "tenant-2" not in first
    second = get(pages, "/db/eu-2-b/channels").body.decode()
    assert "tenant-2" in second and "tenant-1" not in second
    # The switch: relative, so that it works below any mount.
    assert 'href="./../../db/eu-1/"' in second and 'href="./../../"' in second
    assert get(pages, "/db/gone/channels").status == 503
    assert get(pages, "/db/none/").status == 404
    assert get(pages, "/db/eu-1/live").live is not None
    assert get(pages, "/db/eu-1/api/v1/queues").status == 200


def test_an_action_is_done_in_one_of_them(pages: Dashboards) -> None:
    body = b"verb=pause_channel&channel=tenant-1&queue=default"
    posted = WebRequest("POST", "/db/eu-1/act", body=body, client="127.0.0.1")
    assert pages.respond(posted).status == 303
    assert "paused" in get(pages, "/db/eu-1/channels").body.decode()


def test_metrics_of_all_have_the_name_of_their_database(pages: Dashboards) -> None:
    text = get(pages, "/metrics").body.decode()
    assert 'laneway_up{database="eu-1"} 1.0' in text and 'laneway_up{database="gone"} 0.0' in text


def test_nobody_sees_it_without_the_token(tmp_path: Path) -> None:
    queues = {name: Queue(f"sqlite:///{tmp_path}/{name}.db") for name in ("a", "b")}
    pages = Dashboards(queues, token=TOKEN)
    for path in ("/", "/metrics", "/db/a/", "/db/a/metrics"):
        assert get(pages, path).status == 401
    assert get(pages, "/", authorization=f"Bearer {TOKEN}").status == 200
    for header in ("content-security-policy", "x-frame-options"):
        assert header in get(pages, "/").headers
    pages.close()
    with pytest.raises(InvalidOption, match="there is none"):
        Dashboards({})


def test_a_viewer_of_some_channels_sees_only_their_numbers(tmp_path: Path) -> None:
    queues = {name: Queue(f"sqlite:///{tmp_path}/{name}.db") for name in ("a", "b")}
    for queue in queues.values():
        queue.install()
        queue.publish_many(range(7), channel="other")
        queue.publish_many(range(2), channel="mine-1")
    who = Principal("v", VIEWER, channel_prefixes=("mine-",))
    pages = Dashboards(queues, principal=lambda request: who)
    text = get(pages, "/").body.decode()
    assert ">4</span>" in text and ">18</span>" not in text and ">9</span>" not in text
    pages.close()
