"""Mistakes that a new user makes: each is answered by one sentence that says what to do."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import (
    AsyncQueue,
    Constant,
    Exponential,
    LeaseLost,
    Linear,
    NoRetry,
    Queue,
    Worker,
)
from laneway.errors import (
    ConnectionUnavailable,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    SchemaMissing,
)


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/shop.db") as queue:
        queue.install()
        yield queue


def sentence(error: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(error.value)
    assert "\n" not in text and 10 < len(text) < 250, text
    return text


def test_a_server_that_does_not_run() -> None:
    for url in ("postgresql://shop:secret@127.0.0.1:1/shop", "mysql://a:secret@127.0.0.1:1/shop"):
        with Queue(url) as queue, pytest.raises(ConnectionUnavailable) as error:
            queue.publish(1)
        text = sentence(error)
        assert text.startswith(f"no connection to {url.replace('secret', '***')}: ")
        assert text.endswith("; is the server running there?")
        assert "refused" in text and "secret" not in text


def test_nothing_installed(tmp_path: Path) -> None:
    with Queue(f"sqlite:///{tmp_path}/empty.db") as queue:
        for call in (queue.stats, queue.claim, lambda: queue.publish(1), queue.schema_version):
            with pytest.raises(SchemaMissing) as error:
                call()
            assert "run queue.install() or" in sentence(error)


def test_an_older_schema(queue: Queue, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("drop view laneway_queue_stats_v1")
        connection.execute("drop table laneway_subscription")
    with pytest.raises(SchemaMissing) as error:
        queue.topic("orders").publish(1)
    assert "or an older version is: run queue.install()" in sentence(error)


def test_a_payload_that_is_not_json(queue: Queue) -> None:
    for payload in (object(), {"when": object()}, {1, object()}, 1j, float("nan")):
        with pytest.raises(InvalidPayload) as error:
            queue.publish(payload)
        assert "JSON" in sentence(error)
    assert queue.stats() == []


def test_a_negative_delay(queue: Queue) -> None:
    with pytest.raises(InvalidTime) as error:
        queue.publish(1, delay=-5)
    assert sentence(error) == (
        "delay is -5 seconds: it must not be negative or longer than a century"
    )


def test_claiming_nothing(queue: Queue) -> None:
    with pytest.raises(InvalidOption) as error:
        queue.claim(limit=0)
    assert sentence(error) == "limit is 0: it must be between 1 and 10000"


def test_completing_twice(queue: Queue) -> None:
    queue.publish(1)
    (message,) = queue.claim()
    message.complete()
    with pytest.raises(LeaseLost) as error:
        message.complete()
    assert "it was settled already, or the lease ran out" in sentence(error)


def test_the_wrong_with(queue: Queue) -> None:
    wrong: Any = AsyncQueue("sqlite:///:memory:")
    with pytest.raises(TypeError) as error, wrong:
        pass
    assert sentence(error) == "AsyncQueue is for `async with`: without asyncio use Queue"

    async def enter(wrong: Any) -> None:
        async with wrong:
            pass

    with pytest.raises(TypeError) as error:
        asyncio.run(enter(queue))
    assert sentence(error) == "Queue is for `with`: in asyncio code use AsyncQueue"


def test_a_naive_time(queue: Queue) -> None:
    with pytest.raises(InvalidTime) as error:
        queue.publish(1, at=datetime(2030, 1, 1))  # noqa: DTZ001
    assert "use datetime.now(timezone.utc)" in sentence(error)


def test_one_message_where_many_are_meant(queue: Queue) -> None:
    queue.publish(1)
    (message,) = queue.claim()
    wrong: Any = message
    with pytest.raises(InvalidOption) as error:
        queue.complete(wrong)
    assert sentence(error) == "pass a list of messages, or call the method on the message"
    wrong = {"order": 1}
    with pytest.raises(InvalidOption) as error:
        queue.publish_many(wrong)
    assert "use publish for one" in sentence(error)


# What is tried without the package, and the sentence that answers.
EXTRAS = [
    (
        "psycopg",
        "from laneway import Queue; Queue('postgresql://localhost/x')",
        'PostgreSQL needs psycopg 3: pip install "laneway[postgresql]"',
    ),
    (
        "asyncpg",
        "from laneway import AsyncQueue; AsyncQueue('postgresql+asyncpg://localhost/x')",
        'postgresql+asyncpg:// needs asyncpg: pip install "laneway[asyncpg]"',
    ),
    (
        "pymysql",
        "from laneway import Queue; Queue('mysql://localhost/x')",
        'MySQL needs PyMySQL, or asyncmy for asyncio: pip install "laneway[mysql]"',
    ),
    (
        "asyncmy",
        "from laneway import AsyncQueue; AsyncQueue('mysql://localhost/x')",
        'MySQL needs PyMySQL, or asyncmy for asyncio: pip install "laneway[mysql]"',
    ),
    (
        "cronsim",
        "from laneway import Queue; q = Queue('sqlite:///:memory:'); q.install(); "
        "q.schedule('a', cron='* * * * *')",
        'a cron expression needs cronsim: pip install "laneway[cron]"',
    ),
    (
        "django",
        "import laneway.integrations.django",
        'laneway.integrations.django needs Django: pip install "laneway[django]"',
    ),
    (
        "prometheus_client",
        "import laneway.worker.telemetry.metrics",
        'Metrics needs prometheus-client: pip install "laneway[metrics]"',
    ),
    (
        "opentelemetry",
        "import laneway.integrations.otel",
        'laneway.integrations.otel needs opentelemetry-api: pip install "laneway[otel]"',
    ),
    (
        "taskiq",
        "import laneway.integrations.taskiq",
        'laneway.integrations.taskiq needs taskiq: pip install "laneway[taskiq]"',
    ),
    (
        "mcp",
        "import laneway.integrations.mcp",
        'laneway.integrations.mcp needs mcp: pip install "laneway[mcp]"',
    ),
]
# These work without: the standard library does the same, or the user brings the object.
OPTIONAL = ["msgspec", "pydantic", "sqlalchemy", "aiosqlite"]


def without(package: str, code: str) -> subprocess.CompletedProcess[str]:
    block = f"import sys; sys.modules[{package!r}] = None\n"
    report = (
        "try:\n    exec(CODE)\n"
        "except ImportError as error:\n    print(type(error).__name__, error, sep=': ')\n"
    )
    return subprocess.run(
        [sys.executable, "-c", f"{block}CODE = {code!r}\n{report}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


@pytest.mark.repeats("an interpreter for each package")
@pytest.mark.parametrize(("package", "code", "text"), EXTRAS)
def test_a_missing_extra_says_what_to_install(package: str, code: str, text: str) -> None:
    said = without(package, code).stdout.strip()
    assert said.startswith(f"DriverMissing: {text}"), said
    assert "\n" not in said


@pytest.mark.repeats("an interpreter for each package")
@pytest.mark.parametrize("package", OPTIONAL)
def test_what_is_optional_is_not_missed(package: str) -> None:
    code = (
        "from laneway import Queue; q = Queue('sqlite:///:memory:'); q.install(); "
        "q.publish({'a': 1}); print(q.claim()[0].json())"
    )
    assert without(package, code).stdout.strip() == "{'a': 1}"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://h/x?connect_timeout=nan",
        "mysql://h/x?connect_timeout=-1",
        "mysql://h/x?connect_timeout=inf",
        "postgresql://h/x?connect_timeout=nan",
        "postgresql://h:99999/x",
        "postgresql://h:0/x",
        "postgresql://a:5432,b:70000/x",
        "postgresql+asyncpg://u:p@h:abc/x",
        "postgresql://h/x?port=-1",
        "mysql://h:0/x",
    ],
)
def test_numbers_in_a_url_that_are_none(url: str) -> None:
    with pytest.raises(InvalidOption):
        AsyncQueue(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///x?host=/run/postgresql",
        "postgresql://[::1]:5432/x",
        "postgresql://[::1]/x",
        "postgresql://a,b:5433/x?connect_timeout=3",
        "postgresql://u:p%40ss:w@h:5432/x",
        "postgresql://h:/x",
    ],
)
def test_urls_that_libpq_takes(url: str) -> None:
    AsyncQueue(url)


BAD_OPTIONS: list[tuple[str, Callable[[], object]]] = [
    ("pooler", lambda: Queue("sqlite://", pooler="false")),  # type: ignore[arg-type]
    ("group_commit", lambda: Queue("sqlite://", group_commit=1)),  # type: ignore[arg-type]
    ("clock", lambda: Queue("sqlite://", clock=5)),  # type: ignore[arg-type]
    ("observer", lambda: Worker(Queue("sqlite://"), observers=[object()])),  # type: ignore[list-item]
    ("observers", lambda: Worker(Queue("sqlite://"), observers=5)),  # type: ignore[arg-type]
    ("max_delay", lambda: Exponential(initial=600)),
    ("max_delay", lambda: Linear(initial=timedelta(minutes=2), max_delay=60)),
    ("retry", lambda: _handler(ack="reject", retry=NoRetry())),
    ("retry", lambda: _handler(ack="first", retry=Constant())),
]


def _handler(**options: Any) -> None:
    Worker(Queue("sqlite://")).handler("kind", **options)(lambda payload: None)


@pytest.mark.parametrize(("named", "make"), BAD_OPTIONS)
def test_options_that_cannot_be_meant(named: str, make: Callable[[], object]) -> None:
    with pytest.raises(InvalidOption, match=named):
        make()


def test_a_handler_that_settles_itself_may_be_retried() -> None:
    _handler(ack="manual", retry=NoRetry())
