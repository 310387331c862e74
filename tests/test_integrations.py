"""The integrations, through the examples that show them: real processes, a real server."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from laneway import AsyncQueue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.drivers.choice import driver_of
from laneway.integrations.django.database_url import url_of as django_url
from laneway.integrations.sqlalchemy import url_of

EXAMPLES = Path(__file__).parent.parent / "examples"


_SEVERAL = "postgresql://u@/d?host=a%2Cb&port=1%2C2"
_CA_ONLY = "mysql://h/d?ssl_ca=%2Fc&ssl_mode=VERIFY_CA"


@pytest.fixture
def url(server: EmbeddedPostgres) -> str:
    return server.create_database(f"integration_{time.monotonic_ns()}")


def _run(url: str, *command: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "DATABASE_URL": url, **variables},
        cwd=EXAMPLES.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sqlalchemy_publishes_and_completes_in_its_transactions(url: str) -> None:
    told = _run(url, str(EXAMPLES / "sqlalchemy_outbox.py")).splitlines()
    assert told == [
        "rolled back: the card was declined",
        "receipts sent: 1, then: 0",
        "orders: [1]",
    ]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("postgresql+psycopg2://me:p%40ss@h:1/d", "postgresql://me:p%40ss@h:1/d"),
        ("postgresql+psycopg://h/d", "postgresql://h/d"),
        ("postgresql+psycopg2://h/d?sslmode=require", "postgresql://h/d?sslmode=require"),
        ("postgresql+psycopg2://h/d?options=-c x=1", "postgresql://h/d?options=-c%20x%3D1"),
        ("postgresql+psycopg2://h/d?host=/run&x=y", "postgresql://h/d?host=%2Frun"),
        ("postgresql+psycopg://h/d?prepare_threshold=0", "postgresql://h/d"),
        ("postgresql+psycopg://u@/d?host=a:1&host=b:2", _SEVERAL),
        ("postgresql+asyncpg://h/d?ssl=prefer", "postgresql+asyncpg://h/d?sslmode=prefer"),
        ("postgresql+asyncpg://h/d?prepared_statement_cache_size=0", "postgresql+asyncpg://h/d"),
        ("postgresql+asyncpg://h/d?command_timeout=5", "postgresql+asyncpg://h/d"),
        ("sqlite:////var/x.db", "sqlite:////var/x.db"),
        ("sqlite:////var/x y.db?timeout=30", "sqlite:////var/x%20y.db"),
        ("sqlite+aiosqlite:///file:/x.db?uri=true&mode=rw", "sqlite:////x.db"),
        ("mysql+pymysql://h/d?charset=utf8mb4&read_timeout=5", "mysql://h/d"),
        ("mysql+asyncmy://h/d?unix_socket=/x", "mysql://h/d?unix_socket=%2Fx"),
        ("mysql+pymysql://h/d?ssl_ca=/c&ssl_check_hostname=false", _CA_ONLY),
        ("mariadb+pymysql://h/d", "mysql://h/d"),
    ],
)
def test_the_url_of_an_engine(theirs: str, ours: str) -> None:
    found = url_of(SimpleNamespace(url=make_url(theirs)))
    assert found == ours
    driver_of(found)


@pytest.mark.parametrize(
    "options", ["ssl=prefer", "prepared_statement_cache_size=0", "command_timeout=5"]
)
def test_the_url_of_an_asyncpg_engine_works(url: str, options: str) -> None:
    async def go() -> None:
        theirs = f"{url.replace('postgresql:', 'postgresql+asyncpg:')}?{options}"
        engine = create_async_engine(theirs)
        async with AsyncQueue(url_of(engine)) as queue:
            await queue.install()
            await queue.publish(1)
        await engine.dispose()

    asyncio.run(go())


def test_the_url_of_a_real_engine() -> None:
    engine = create_engine("postgresql+psycopg://me:p%40ss@h:1/d?connect_timeout=3")
    assert url_of(engine) == "postgresql://me:p%40ss@h:1/d?connect_timeout=3"


@pytest.mark.parametrize(
    ("vendor", "settings", "ours"),
    [
        ("postgresql", {}, "postgresql:///shop"),
        ("postgresql", {"USER": "me", "PASSWORD": "p@ss"}, "postgresql://me:p%40ss@/shop"),
        ("postgresql", {"HOST": "h", "PORT": "1"}, "postgresql://h:1/shop"),
        ("postgresql", {"HOST": "::1", "PORT": 1}, "postgresql://[::1]:1/shop"),
        ("postgresql", {"HOST": "/run/x", "PORT": 1}, "postgresql:///shop?host=%2Frun%2Fx&port=1"),
        ("postgresql", {"HOST": "a,b"}, "postgresql:///shop?host=a%2Cb"),
        ("postgresql", {"PORT": "1"}, "postgresql:///shop?port=1"),
        (
            "postgresql",
            {"OPTIONS": {"pool": True, "server_side_binding": True, "isolation_level": 3}},
            "postgresql:///shop",
        ),
        (
            "postgresql",
            {"OPTIONS": {"sslmode": "require", "assume_role": "a b", "options": "-c x=1"}},
            "postgresql:///shop?sslmode=require&options=-c%20x%3D1%20-c%20role%3Da%5C%20b",
        ),
        ("mysql", {"HOST": "::1"}, "mysql://[::1]/shop"),
        ("mysql", {"HOST": "/run/x.sock"}, "mysql:///shop?unix_socket=%2Frun%2Fx.sock"),
        (
            "mysql",
            {"HOST": "h", "OPTIONS": {"unix_socket": "/x", "charset": "utf8", "init_command": ""}},
            "mysql:///shop?unix_socket=%2Fx",
        ),
        (
            "mysql",
            {"HOST": "h", "OPTIONS": {"ssl": {"ca": "/ca.pem"}, "connect_timeout": 3}},
            "mysql://h/shop?connect_timeout=3&ssl_ca=%2Fca.pem&ssl_mode=VERIFY_CA",
        ),
        ("mysql", {"HOST": "h", "OPTIONS": {"ssl": True}}, "mysql://h/shop?ssl_mode=REQUIRED"),
        ("mysql", {"HOST": "h", "OPTIONS": {"ssl_mode": "DISABLED"}}, "mysql://h/shop"),
        ("sqlite", {"NAME": "/x/a b.db"}, "sqlite:////x/a%20b.db"),
        ("sqlite", {"NAME": "file:/x/a%20b.db?mode=rwc"}, "sqlite:////x/a%20b.db"),
    ],
)
def test_the_url_of_djangos_database(vendor: str, settings: dict[str, Any], ours: str) -> None:
    theirs = SimpleNamespace(vendor=vendor, settings_dict={"NAME": "shop", **settings})
    assert django_url(theirs) == ours
    driver_of(ours)


@pytest.mark.parametrize(
    ("vendor", "settings", "says"),
    [
        ("mysql", {"OPTIONS": {"read_default_file": "/my.cnf"}}, "write NAME, USER"),
        ("sqlite", {"NAME": ":memory:"}, "a file name"),
        ("oracle", {}, "no engine for oracle"),
    ],
)
def test_databases_of_django_that_cannot_be_reached(
    vendor: str, settings: dict[str, Any], says: str
) -> None:
    theirs = SimpleNamespace(vendor=vendor, settings_dict={"NAME": "shop", **settings})
    with pytest.raises(ImproperlyConfigured, match=says):
        django_url(theirs)


def test_options_that_are_for_django_alone(url: str) -> None:
    options = {"pool": True, "server_side_binding": True, "isolation_level": 3}
    assert _django(url, "refusal", OPTIONS=json.dumps(options))["statuses"]


def test_what_django_installs_belongs_to_its_role(url: str) -> None:
    role = f"role of {time.monotonic_ns()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'create role "{role}"')
        connection.execute(f'grant create on database "{connection.info.dbname}" to "{role}"')
        connection.execute(f'grant all on schema public to "{role}"')
        assert _django(url, "refusal", OPTIONS=json.dumps({"assume_role": role}))["statuses"]
        owner = connection.execute(
            "select rolname from pg_namespace n join pg_roles r on r.oid = nspowner "
            "where nspname = 'laneway'"
        ).fetchone()
    assert owner == (role,)


@pytest.mark.repeats("starts projects and workers of Django; its transactions are in make test")
def test_django_installs_publishes_in_its_transaction_and_runs_tasks(url: str) -> None:
    site = str(EXAMPLES / "django_site.py")
    _run(url, site, "migrate")
    _run(url, site, "migrate")
    assert _run(url, site, "shop").splitlines() == [
        "rolled back: the card was declined",
        "waiting: {'default': 2, 'other': 1}",
    ]
    told = _run(url, site, "laneway_worker", "--until-empty")
    # Two threads print at once: a line of one may end behind that of the other.
    expected = ["hello tenant-42", "receipt for order 1 of tenant-42, attempt 1"]
    assert [told.count(line) for line in expected] == [1, 1]
    assert len(told) == len("".join(expected)) + 2


def _django(url: str, case: str, **variables: str) -> Any:
    """What a case of tests/django_site.py saw."""
    return json.loads(_run(url, "-m", "tests.django_site", case, **variables))


def test_django_publishes_what_a_partly_refused_call_says_it_published(url: str) -> None:
    assert _django(url, "refusal") == {
        "statuses": ["full", "published"],
        "waiting": {"default free": 1},
    }


def test_django_publishes_the_copies_that_a_partly_refused_call_says_it_published(url: str) -> None:
    assert _django(url, "topic refusal") == {
        "statuses": ["published", "full"],
        "waiting": {"receipts default": 1},
    }


def test_djangos_topics_and_schedules_belong_to_its_transaction(url: str) -> None:
    assert _django(url, "rollback") == {
        "waiting": {"receipts default": 1},
        "subscribed": ["receipts"],
        "schedules": ["kept"],
    }


@pytest.mark.repeats("starts projects and workers of Django; its transactions are in make test")
def test_the_databases_of_djangos_tests_can_be_copied_and_dropped(url: str) -> None:
    assert _django(url, "test run") == [0]


@pytest.mark.repeats("starts projects and workers of Django; its transactions are in make test")
def test_what_djangos_worker_is_told_by_the_command_line_holds(url: str) -> None:
    _django(url, "mail")
    command = ("-m", "tests.django_site", "laneway_worker", "--until-empty")
    given = ("--queue", "emails", "--concurrency", "3")
    assert _run(url, *command, *given, JOBS="__main__.worker") == "emails second, one of 3\n"
    assert _run(url, *command, JOBS="__main__.worker") == "default first, one of 10\n"


def test_fastapi_publishes_and_its_worker_stops_with_it(url: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "examples.fastapi_app:app", "--port", str(port)],
        env={**os.environ, "DATABASE_URL": url},
        cwd=EXAMPLES.parent,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        base = f"http://127.0.0.1:{port}"
        _until(lambda: _ask(f"{base}/receipts/t") == {"sent": 0})
        for order in (1, 2, 2):  # the third has the key of the second
            assert _ask(f"{base}/tenants/t/orders/{order}", "POST") is not None
        _until(lambda: _ask(f"{base}/receipts/t") == {"sent": 2})
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=30)
    finally:
        server.kill()
        server.wait()
    assert "Application shutdown complete" in errors
    assert "Traceback" not in errors


def _ask(address: str, method: str = "GET") -> Any:
    with (
        suppress(OSError),
        urllib.request.urlopen(urllib.request.Request(address, method=method), timeout=5) as answer,
    ):
        return json.load(answer)
    return None


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
