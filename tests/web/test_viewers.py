"""A hundred viewers cost the database what one costs."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch
from urllib.request import urlopen

import pytest

from laneway import NewMessage, Queue
from laneway.client.sync.database import Database
from laneway.plan import Plan, Statement
from laneway.web import dashboard
from laneway.web.cache import SharedCache
from laneway.web.hints import EVERY
from tests.web.browser import mounted, serving

MANY = 100
PAGES = (
    "",
    "queue?name=default",
    "channels",
    "messages",
    "dead-letters",
    "flows",
    "flows/1",
    "limits",
    "system",
)


class Counted:
    """Statements that any client of this process sent."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.statements = 0

    def plan(self, plan: Plan[Any]) -> Plan[Any]:
        answer: Any = None
        while True:
            try:
                statement: Statement = plan.send(answer)
            except StopIteration as end:
                return end.value
            with self._lock:
                self.statements += 1
            answer = yield statement


@pytest.fixture
def counted() -> Iterator[Counted]:
    found, run = Counted(), Database.run

    def counting(database: Database, plan: Plan[Any], *args: Any, **named: Any) -> Any:
        return run(database, found.plan(plan), *args, **named)

    with patch.object(Database, "run", counting):
        yield found


@contextmanager
def served(tmp_path: Path, keep: float) -> Iterator[tuple[Any, str]]:
    with Queue(f"sqlite:///{tmp_path}/queue.db", upkeep_every=None) as queue:
        queue.install()
        queue.publish_many([NewMessage(n, channel=f"c{n % 7}") for n in range(50)])
        for message in queue.claim(5):
            message.fail("no")
        with queue.flow("import") as flow:
            flow.add("merge", after=[flow.add(n) for n in range(5)])
        app = dashboard(queue, trust_local=True)
        app.dashboard.cache = SharedCache(keep=keep)
        with serving(mounted(all=app)) as base, closing(app.dashboard):
            yield app.dashboard, f"{base}/all/of/it/"


def read(address: str) -> int:
    with urlopen(address, timeout=120) as answer:
        answer.read()
        return int(answer.status)


def cost(counted: Counted, work: Callable[[], object]) -> int:
    before = counted.statements
    work()
    return counted.statements - before


def test_pages_that_are_fetched_again_share_their_answers(tmp_path: Path, counted: Counted) -> None:
    """As polling and hints do it. The answers are kept long here, so that no slow machine needs
    them twice."""
    with served(tmp_path, keep=3600) as (_, address), ThreadPoolExecutor(MANY) as viewers:
        for page in PAGES:
            everybody = [address + page] * MANY

            def many(everybody: list[str] = everybody) -> None:
                assert set(viewers.map(read, everybody)) == {200}

            first = cost(counted, many)
            assert 0 < first < 45, f"{page}: as one viewer"
            assert cost(counted, lambda page=page: read(address + page)) == 0  # type: ignore[misc]
            assert cost(counted, many) == 0


def test_open_streams_share_one_look(tmp_path: Path, counted: Counted) -> None:
    with served(tmp_path, keep=3600) as (found, address):
        one = found.hints.join()
        while counted.statements == 0:
            time.sleep(0.05)
        began, before = time.monotonic(), counted.statements
        streams = [urlopen(address + "live", timeout=120) for _ in range(MANY)]
        for stream in streams:
            assert stream.readline().startswith(b"retry:")
        time.sleep(3 * EVERY)
        looks, seconds = counted.statements - before, time.monotonic() - began
        for stream in streams:
            stream.close()
        found.hints.leave()
        assert one >= 0
        # One look each EVERY, and the one that was under way.
        assert looks <= seconds / EVERY + 2
