"""Install by a role that may not create schemas, and while the server is still starting."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from laneway import Queue, install_sql
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import DatabaseFailed, SchemaMissing
from laneway.migrate import uninstall_sql

_numbers = count(1)


class Tenant:
    """A database of an administrator, and a role in it that may create nothing."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        number = next(_numbers)
        self.role = f"app {number}"
        self.admin_url = server.create_database(f"of_an_admin_{number}")
        self.url = self.admin_url.replace("postgres@", f"app%20{number}@")
        self.admin(f'create role "{self.role}" login')
        self.admin("revoke create on schema public from public")

    def admin(self, sql: str) -> None:
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(sql.encode())

    def queue(self) -> Queue:
        return Queue(self.url, schema="work queue")


@pytest.fixture
def tenant(server: EmbeddedPostgres) -> Iterator[Tenant]:
    yield Tenant(server)


OWNED = 'create schema "work queue" authorization "{role}"'
LENT = 'create schema "work queue"', 'grant usage, create on schema "work queue" to "{role}"'


@pytest.mark.parametrize("made", [(OWNED,), LENT], ids=["owned", "lent"])
@pytest.mark.parametrize("printed", [False, True], ids=["by the client", "printed"])
def test_install_in_a_schema_of_an_administrator(
    tenant: Tenant, made: tuple[str, ...], printed: bool
) -> None:
    for sql in made:
        tenant.admin(sql.format(role=tenant.role))
    with tenant.queue() as queue, psycopg.connect(tenant.url) as connection:
        if printed:
            connection.execute(install_sql("work queue").encode())
            connection.commit()
        else:
            queue.install()
        queue.install()
        queue.upgrade()
        queue.publish(1, key="k")
        (message,) = queue.claim()
        message.complete()
        queue.upkeep()
        assert {f.level for f in queue.diagnose() if f.check in ("schema", "shape")} == {"ok"}
        if printed:
            connection.execute(uninstall_sql("work queue").encode())
            connection.commit()
        else:
            queue.uninstall()
        with pytest.raises(SchemaMissing):
            queue.schema_version()
        left = connection.execute(
            "select count(*) from pg_depend d where d.refobjid = to_regnamespace('\"work queue\"')"
        ).fetchone()
        assert left == (0,), "an administrator's schema stays, empty"
        if made is LENT:
            queue.install()
            assert queue.publish(2).id


def test_what_to_grant_is_said(tenant: Tenant) -> None:
    with tenant.queue() as queue:
        with pytest.raises(DatabaseFailed) as error:
            queue.install()
        wanted = f'CREATE SCHEMA "work queue" AUTHORIZATION "{tenant.role}"'
        assert wanted in str(error.value)
        tenant.admin('create schema "work queue"')
        with pytest.raises(DatabaseFailed) as error:
            queue.install()
        wanted = f'GRANT USAGE, CREATE ON SCHEMA "work queue" TO "{tenant.role}"'
        assert wanted in str(error.value)
        tenant.admin(wanted)
        queue.install()
        queue.publish(1)


def _install(url: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "laneway.cli", "install", *words],
        env={**os.environ, "DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_install_waits_for_a_server_that_is_starting(tmp_path: Path) -> None:
    with EmbeddedPostgres(version=18, settings={"fsync": False}) as server:
        url = server.create_database("late")
        server.kill()
        waiting = _install(url, "--wait", "100")
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
        assert line.startswith("Waiting for the database: no connection to postgresql://")
        server.start()
        out, errors = waiting.communicate(timeout=100)
        assert waiting.returncode == 0, errors
        assert "version" in out + errors


def test_install_says_why_it_gave_up() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"postgresql://app:secret@127.0.0.1:{nobody.getsockname()[1]}/shop"
        done = _install(url, "--wait", "1")
        _, errors = done.communicate(timeout=100)
    assert done.returncode == 1
    first, last = errors.splitlines()[0], errors.splitlines()[-1]
    assert first.startswith("Waiting for the database: ") and "refused" in first
    assert "no connection to" in last and "secret" not in errors
