"""What a handler's annotations ask for, before any message comes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from laneway import Constant, Queue, Worker
from laneway.errors import InvalidOption


@dataclass
class Early:
    later: "Later"


@dataclass
class Astray:
    nobody: "Nobody"  # type: ignore[name-defined]  # noqa: F821


@dataclass
class Hooked:
    hook: Callable[[], None]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield Worker(queue)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (complex, r"can never be given its 'payload': cannot decode into complex"),
        (list[complex], "cannot decode into complex"),
        (dict[int, str], "the keys of JSON are text, not int"),
        (Hooked, r"Hooked.hook: cannot decode into"),
    ],
)
def test_a_payload_that_nothing_can_be_is_refused(worker: Worker, wanted: Any, text: str) -> None:
    def handle(payload: Any) -> None: ...

    handle.__annotations__["payload"] = wanted
    with pytest.raises(InvalidOption, match=text):
        worker.handler("a")(handle)


def test_what_is_defined_further_down_is_looked_for_at_the_start(worker: Worker) -> None:
    name = globals().pop("Later")
    try:

        @worker.handler("early")
        def early(payload: Early) -> None: ...

    finally:
        globals()["Later"] = name
    assert worker.check() == []
    worker.run(until_empty=True)


def test_what_is_defined_nowhere_is_said_before_anything_is_claimed(worker: Worker) -> None:
    @worker.handler("astray")
    def astray(payload: Astray) -> None: ...

    (problem,) = worker.check()
    assert "astray: the annotations of Astray cannot be read (name 'Nobody'" in problem
    with pytest.raises(InvalidOption, match="Nobody"):
        worker.run(until_empty=True)


@pytest.mark.parametrize("retry", [True, "5", Constant])
def test_what_is_no_retry_strategy_is_refused(worker: Worker, retry: Any) -> None:
    def handle(payload: int) -> None: ...

    with pytest.raises(InvalidOption, match="a strategy such as"):
        worker.handler("a", retry=retry)(handle)


@dataclass
class Later:
    x: int
