"""The pytest plugin, which pytest finds by its entry point. pytest loads it in every run, so it
imports nothing before a fixture is asked for."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from laneway.client.aio.queue import AsyncQueue
    from laneway.client.sync.queue import Queue

    from .movable_clock import MovableClock
    from .schema import EmptiedSchema

_URL = "LANEWAY_TEST_URL"
_EMBEDDED = "embedded"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "laneway_url",
        f"database of Laneway's fixtures: a URL, $NAME for one in the environment, or {_EMBEDDED} "
        f"for a PostgreSQL server of this run's own (default: a SQLite file; {_URL} comes first)",
        default="",
    )
    parser.addini("laneway_schema", "schema of Laneway's fixtures (default: laneway)", default="")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """After the fixtures: no test leaves its clock to the next one."""
    module = sys.modules.get("laneway.testing.movable_clock")
    if module is not None:
        module.clock.reset()


def _given_url(config: pytest.Config) -> str:
    named = str(config.getini("laneway_url"))
    if url := os.environ.get(_URL):
        return url
    if not named.startswith("$"):
        return named
    if url := os.environ.get(named[1:]):
        return url
    raise pytest.UsageError(f"laneway_url is {named}, which is not in the environment")


@pytest.fixture(scope="session")
def laneway_url(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The database of the tests: that of the ini option ``laneway_url``, or a SQLite file."""
    url = _given_url(pytestconfig)
    if url == _EMBEDDED:
        from laneway.dev.embedded import EmbeddedPostgres

        settings = {"fsync": False, "full_page_writes": False, "synchronous_commit": False}
        with EmbeddedPostgres(settings=settings) as server:
            yield server.create_database("test")
    else:
        folder = tmp_path_factory.mktemp("laneway") if not url else None
        yield url or f"sqlite:///{folder}/test.db?synchronous=normal"


@pytest.fixture(scope="session")
def laneway_schema(pytestconfig: pytest.Config) -> str:
    """The schema in it: ``laneway``; processes of pytest-xdist that share a database have one
    each, unless the ini option ``laneway_schema`` names it."""
    named = str(pytestconfig.getini("laneway_schema"))
    process = os.environ.get("PYTEST_XDIST_WORKER")
    shared = process and _given_url(pytestconfig) not in ("", _EMBEDDED)
    return named or (f"laneway_{process}" if shared else "laneway")


@pytest.fixture(scope="session")
def _laneway_schema(laneway_url: str, laneway_schema: str) -> "Iterator[EmptiedSchema]":
    from .schema import emptied_schema

    with emptied_schema(laneway_url, laneway_schema) as emptied:
        yield emptied


@pytest.fixture
def _laneway_emptied(_laneway_schema: "EmptiedSchema") -> "EmptiedSchema":
    _laneway_schema.empty()
    return _laneway_schema


@pytest.fixture
def laneway_queue(_laneway_emptied: "EmptiedSchema") -> "Iterator[Queue]":
    """A queue in which nothing is, in a schema that is emptied before each test."""
    from laneway.client.sync.queue import Queue

    with Queue(_laneway_emptied.url, schema=_laneway_emptied.schema) as queue:
        yield queue


@pytest.fixture
def laneway_async_queue(_laneway_emptied: "EmptiedSchema") -> "Iterator[AsyncQueue]":
    """The same for asyncio, under any plugin or ``asyncio.run``."""
    from laneway.client.aio.queue import AsyncQueue

    from .loop_queue import LoopRunner

    queue = AsyncQueue(_laneway_emptied.url, schema=_laneway_emptied.schema)
    runner = LoopRunner(queue)
    yield queue
    runner.end()


@pytest.fixture
def laneway_clock() -> "MovableClock":
    """The clock of all clients and workers of this process, which the test moves."""
    from .movable_clock import clock

    clock.move(0)
    return clock
