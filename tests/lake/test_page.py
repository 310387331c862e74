"""The page asks nobody for anything, shows hostile names as text, and says what is wrong first."""

import re
from html.parser import HTMLParser

import pytest

from laneway.lake.report.page.html import length, number, percent
from tests.lake.real_run import HOSTILE
from tests.lake.scenes import Scene


class Tags(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "br", "rect", "line", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open and tag not in ("rect", "line", "path", "circle"):
            assert self.open.pop() == tag, "tags are closed in their order"

    def handle_data(self, data: str) -> None:
        self.text += data


_REAL = pytest.param(
    "real", marks=pytest.mark.repeats("the same page of a history that is made up")
)


@pytest.fixture(params=["made_up", _REAL])
def page(request: pytest.FixtureRequest) -> str:
    scene: Scene = request.getfixturevalue(request.param)
    return scene.page


def test_it_makes_no_request(page: str) -> None:
    seen = Tags(page)
    loading = {"script", "link", "img", "iframe", "object", "embed", "image", "use", "base", "form"}
    assert not seen.tags & loading
    for name, value in seen.attributes:
        assert name not in ("src", "srcset", "action", "style") and not name.startswith("on")
        assert name not in ("href", "xlink:href") or value.startswith("#")
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\(", page)


def test_hostile_names_and_errors_are_text(real: Scene) -> None:
    assert HOSTILE not in real.page
    seen = Tags(real.page)
    assert "script" not in seen.tags
    assert seen.text.count(HOSTILE) >= 3, "a queue, a channel and an error are shown"


def test_it_opens_with_three_sentences_of_what_is_wrong(made_up: Scene) -> None:
    verdict = re.search(r'<div class="verdict (\w+)">(.*?)</div>', made_up.page)
    assert verdict and verdict[1] == "bad"
    sentences = re.findall(r"<p[^>]*>(.*?)</p>", verdict[2])
    assert len(sentences) == 3
    assert "are waiting" in sentences[0]
    assert "Queue webhooks is behind" in sentences[1]
    assert "webhooks" in sentences[2]


def test_nothing_unknown_is_shown_as_a_number(page: str) -> None:
    text = Tags(page).text
    assert not re.search(r"\b(None|nan|inf|NaN)\b", text)
    assert "1e-" not in text


def test_numbers_are_said_as_people_say_them() -> None:
    assert [number(n) for n in (3, 1234, 12345, 0.25, 2.5)] == [
        "3", "1234", "12\u202f345", "0.25", "2.5",
    ]  # fmt: skip
    assert [length(s) for s in (0.0004, 0.02, 5, 59, 600, 5400, 200_000)] == [
        "0 ms", "20 ms", "5.0 s", "59 s", "10 min", "1 h 30 min", "2.3 days",
    ]  # fmt: skip
    assert [percent(s) for s in (0, 0.0001, 0.05, 0.5, 1)] == [
        "0 %", "< 0.1 %", "5.0 %", "50 %", "100 %",
    ]  # fmt: skip
