"""A password is in no error, log, repr, process list or view of the server."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from laneway import AsyncQueue, Queue, Worker
from laneway.cli.app import app
from laneway.dev.chaos.config import RunConfig
from laneway.dev.chaos.processes import ProcessSet
from laneway.dev.demo.tenants import URL
from laneway.dev.demo.workers import WorkerProcesses
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres
from tests.security.canary import (
    CANARY,
    DRIVERS,
    PASSWORDS,
    command_lines,
    everything_said,
    failing,
    holds_canary,
    logged,
)

# Nobody listens there.
NOWHERE = "127.0.0.1:1"
LOGIN = f"create role canary login superuser password '{CANARY}'"


def says_nothing(driver: str, url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    error = failing(driver, url, lambda queue: queue.publish(1))
    assert not holds_canary(everything_said(error))
    assert not holds_canary(logged(caplog.records))
    assert str(error)


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_an_address_that_leads_nowhere(
    driver: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"{DRIVERS[driver][0]}://user:{PASSWORDS[password]}@{NOWHERE}/shop"
    says_nothing(driver, url, caplog)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_host_that_does_not_exist(driver: str, caplog: pytest.LogCaptureFixture) -> None:
    says_nothing(driver, f"{DRIVERS[driver][0]}://user:{CANARY}@no-such-host.invalid/shop", caplog)


@pytest.mark.parametrize("rest", [f"{NOWHERE}/shop?password={CANARY}", "[::1/shop", "h:x/d"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_url_that_cannot_be_read(
    driver: str, rest: str, caplog: pytest.LogCaptureFixture
) -> None:
    says_nothing(driver, f"{DRIVERS[driver][0]}://user:{CANARY}@{rest}", caplog)


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedPostgres]:
    """A server that asks for the password."""
    with EmbeddedPostgres(version=18, settings={"fsync": False}) as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(LOGIN.encode())
            rules = server.data / "pg_hba.conf"
            rules.write_text(
                "host all canary 127.0.0.1/32 scram-sha-256\n" + rules.read_text(encoding="utf-8")
            )
            connection.execute("select pg_reload_conf()")
        yield server


@pytest.fixture(scope="module")
def url(guarded: EmbeddedPostgres) -> str:
    made = guarded.create_database("canary").replace("postgres@", f"canary:{CANARY}@")
    with Queue(made) as queue:
        queue.install()
    return made


@pytest.mark.parametrize("driver", ["sync psycopg", "async psycopg", "asyncpg"])
def test_a_wrong_password_on_postgresql(
    driver: str, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = url.replace(CANARY, f"wrong-{CANARY}").replace("postgresql", DRIVERS[driver][0])
    says_nothing(driver, wrong, caplog)


@pytest.mark.parametrize("driver", ["pymysql", "asyncmy"])
def test_a_wrong_password_on_mariadb(
    driver: str, mariadb: EmbeddedMariaDB, caplog: pytest.LogCaptureFixture
) -> None:
    mariadb.execute("create user if not exists 'canary'@'%' identified by 'another'")
    says_nothing(driver, mariadb.url().replace("root@", f"canary:{CANARY}@"), caplog)


@pytest.mark.parametrize("driver", ["sync psycopg", "asyncpg"])
def test_a_server_that_goes_away(driver: str, url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    asked = url.replace("postgresql", DRIVERS[driver][0])

    def end_who_waits() -> None:
        """In the middle of a call: one that ended while it was idle is replaced in silence."""
        with psycopg.connect(url, autocommit=True) as connection:
            for _ in range(200):
                if connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where usename = 'canary' and wait_event_type = 'Lock'"
                ).fetchall():
                    return
                time.sleep(0.05)

    async def call(queue: AsyncQueue) -> None:
        with Queue(url) as first, psycopg.connect(url) as other:
            first.publish(1, key="held", connection=other)
            ending = asyncio.create_task(asyncio.to_thread(end_who_waits))
            try:
                await queue.publish(2, key="held")
            finally:
                await ending

    def call_sync(queue: Queue) -> None:
        with Queue(url) as first, psycopg.connect(url) as other:
            first.publish(1, key="held", connection=other)
            threading.Thread(target=end_who_waits).start()
            queue.publish(2, key="held")

    error = failing(driver, asked, call if DRIVERS[driver][1] is AsyncQueue else call_sync)
    assert not holds_canary(everything_said(error))
    assert not holds_canary(logged(caplog.records))


def test_what_the_server_shows_of_us(url: str) -> None:
    """Sessions, statements, plans: a viewer of the server reads them all."""
    with Queue(url) as queue, psycopg.connect(url) as connection:
        queue.publish(1)
        rows = connection.execute("select * from pg_stat_activity").fetchall()
        rows += connection.execute("select * from pg_prepared_statements").fetchall()
        rows += connection.execute("explain (verbose) select * from laneway.message").fetchall()
    assert not holds_canary(repr(rows))


def test_what_objects_show_of_themselves(url: str) -> None:
    with Queue(url) as queue:
        database = queue.database
        worker = Worker(queue)
        seen = [
            queue,
            queue._address,
            database,
            database._runner,
            database.options,
            database.engine,
            worker,
        ]
        assert not holds_canary("".join(map(repr, seen)))
    config = RunConfig("postgresql", url, "x", 1, ".")
    assert not holds_canary(repr(config))


WORKER = """
import os
from laneway import Queue, Worker

worker = Worker(Queue(os.environ["DATABASE_URL"]), concurrency=2, processes=1)

@worker.handler("slow", run="process")
def slow() -> None:
    import time
    time.sleep(60)
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "canary_jobs.py").write_text(WORKER, encoding="utf-8")
    return tmp_path


@pytest.mark.repeats("starts many processes; addresses and drivers are in make test")
def test_a_worker_its_pulse_and_its_processes_in_the_process_list(url: str, module: Path) -> None:
    """Its environment holds the URL, which only the same user and root can read."""
    with Queue(url) as queue:
        queue.publish(None, kind="slow")
    process = subprocess.Popen(
        [sys.executable, "-m", "laneway.cli", "worker", "canary_jobs:worker", "--verbose"],
        cwd=module,
        env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(module)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        lines: dict[int, str] = {}
        end = time.monotonic() + 60
        while len(lines) < 3 and time.monotonic() < end:
            lines = command_lines(process.pid)
            time.sleep(0.05)
        assert len(lines) >= 3, lines  # the worker, its heartbeat, the handler's process
        assert not holds_canary(repr(lines))
    finally:
        process.terminate()
        time.sleep(0.2)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert not holds_canary(out.decode() + err.decode())


@pytest.mark.repeats("starts many processes; addresses and drivers are in make test")
def test_the_demos_and_chaos_processes_in_the_process_list(url: str, tmp_path: Path) -> None:
    def chaos() -> Any:
        return ProcessSet(RunConfig("postgresql", url, "x", 1, str(tmp_path)), lambda name: url)

    with chaos() as crew:
        crew.start()
        assert not holds_canary(repr(command_lines(os.getpid())))
    with WorkerProcesses(url):
        lines = command_lines(os.getpid())
        assert any("laneway.dev.demo.jobs" in line for line in lines.values())
        assert not holds_canary(repr(lines))
    assert URL not in os.environ


@pytest.mark.repeats("starts many processes; addresses and drivers are in make test")
@pytest.mark.parametrize("words", [["stats"], ["doctor"], ["publish", "1"], ["stats", "--json"]])
def test_the_command_line_says_nothing(words: list[str]) -> None:
    for scheme in ("postgresql", "mysql"):
        url = f"{scheme}://user:{CANARY}@{NOWHERE}/shop"
        done = CliRunner().invoke(app, words, env={"DATABASE_URL": url})
        assert done.exit_code != 0 and isinstance(done.exception, SystemExit)
        assert not holds_canary(done.stdout + done.stderr)
