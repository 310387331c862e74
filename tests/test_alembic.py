"""Laneway among an application's Alembic migrations: real commands, on real databases."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from laneway import Queue
from laneway.drivers.sqlite.url import read_url
from laneway.engines.drift import BETWEEN
from laneway.engines.mysql.schema import _statements
from laneway.errors import SchemaMissing
from tests.model.mysql import connect
from tests.next_version import add_migration

ROOT = Path(__file__).parent.parent
_numbers = count(1)

ENV = """
import asyncio
import os

from alembic import context
from sqlalchemy import Column, Integer, MetaData, Table, create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from laneway.integrations import alembic as laneway

if dialect := os.environ.get("NEXT_VERSION_OF"):
    import pytest

    from tests.next_version import add_migration

    add_migration(pytest.MonkeyPatch(), dialect)
metadata = MetaData()
Table("orders", metadata, Column("id", Integer, primary_key=True))
url = os.environ["DATABASE_URL"]
options = {"target_metadata": metadata, "include_schemas": bool(os.environ.get("INCLUDE_SCHEMAS"))}


def include_name(name, type_, parent_names):
    if url.startswith("mysql") and type_ == "schema" and name is not None:
        return False  # a database: of the server itself, or of another application
    return laneway.include_name(name, type_, parent_names)


if not os.environ.get("WITHOUT_FILTER"):
    options["include_name"] = include_name


def run(connection):
    context.configure(connection=connection, **options)
    with context.begin_transaction():
        context.run_migrations()


async def run_async():
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        await connection.run_sync(run)
        await connection.commit()
    await engine.dispose()


if context.is_offline_mode():
    context.configure(url=url, literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
elif "+a" in url:
    asyncio.run(run_async())
else:
    with create_engine(url).connect() as connection:
        run(connection)
        connection.commit()
"""

REVISION = """
import sqlalchemy as sa
from alembic import op

from laneway.integrations import alembic as laneway

revision, down_revision = {revision!r}, {before!r}


def upgrade() -> None:
    {upgrade}


def downgrade() -> None:
    {downgrade}
"""

TABLE = 'op.create_table("orders", sa.Column("id", sa.Integer, primary_key=True))'
REVISIONS = [
    (TABLE, 'op.drop_table("orders")'),
    ("laneway.install(version=1)", "laneway.uninstall()"),
]
NEXT = ("laneway.upgrade(since=1, version=2)", "pass")
# Each test runs several commands, each a process of its own.
pytestmark = pytest.mark.timeout(600)

INI = """
[alembic]
script_location = migrations
[loggers]
keys = root, alembic
[handlers]
keys = console
[formatters]
keys = plain
[logger_root]
level = WARNING
handlers = console
[logger_alembic]
level = INFO
handlers =
qualname = alembic
[handler_console]
class = StreamHandler
args = (sys.stderr,)
formatter = plain
[formatter_plain]
format = %(levelname)-5.5s [%(name)s] %(message)s
"""
LOGGING = "from logging.config import fileConfig\nfileConfig('alembic.ini')\n"


class Database(NamedTuple):
    """One that is empty, as the application names it."""

    dialect: str
    url: str

    def queue(self) -> Queue:
        return Queue(self.url, upkeep_every=None)

    def version(self) -> int | None:
        with self.queue() as queue:
            try:
                return queue.schema_version()
            except SchemaMissing:
                return None

    def parts(self) -> Any:
        """All that is in the schema."""
        with self.queue() as queue:
            found = queue.database.run(queue.database.engine.schema._found())  # type: ignore[attr-defined]
        # A table's checks come in any order; MySQL's views name their database.
        name = f"`{self.url.rpartition('/')[2]}`."
        return {
            part: sorted((text or "").replace(name, "").split(BETWEEN))
            for part, text in found.items()
        }

    def run_script(self, script: str) -> None:
        if self.dialect == "postgresql":
            with psycopg.connect(_plain(self.url)) as connection:
                connection.execute(script.encode())
        elif self.dialect == "mysql":
            with connect(_plain(self.url), autocommit=True) as mysql, mysql.cursor() as cursor:
                for statement in _statements(script):
                    cursor.execute(statement)
        else:
            import sqlite3

            file = sqlite3.connect(read_url(_plain(self.url)).path)
            file.executescript(script)
            file.close()


def _plain(url: str) -> str:
    scheme, _, rest = url.partition(":")
    return f"{scheme.partition('+')[0]}:{rest}"


class Project:
    """An application with its migrations; ``next_package``: Laneway is one version newer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "migrations" / "versions").mkdir(parents=True)
        (folder / "alembic.ini").write_text(INI)
        (folder / "migrations" / "env.py").write_text(LOGGING + ENV)
        self._count = 0
        for one in REVISIONS:
            self.add(*one)

    def add(self, upgrade: str, downgrade: str) -> None:
        self._count += 1
        revision, before = f"{self._count:04}", f"{self._count - 1:04}" if self._count > 1 else None
        text = REVISION.format(
            revision=revision, before=before, upgrade=upgrade, downgrade=downgrade
        )
        (self._folder / "migrations" / "versions" / f"{revision}.py").write_text(text)

    def alembic(
        self,
        database: Database,
        *words: str,
        next_package: bool = False,
        fails: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """What it printed on stdout."""
        done = subprocess.run(
            [sys.executable, "-m", "alembic", *words],
            cwd=self._folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "DATABASE_URL": database.url,
                **({"NEXT_VERSION_OF": database.dialect} if next_package else {}),
                **(variables or {}),
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        if not fails:
            # asyncmy warns of the primary key of Alembic's own table.
            ours = [line for line in done.stderr.splitlines() if "alembic" not in line]
            assert not ours, "nothing is printed but what Alembic prints"
        return done.stdout


DRIVERS = {
    "asyncpg": ("server", "postgresql"),
    "psycopg": ("server", "postgresql"),
    "psycopg2": ("server", "postgresql"),
    "pymysql": ("mariadb", "mysql"),
    "asyncmy": ("mariadb", "mysql"),
    "pysqlite": ("sqlite_files", "sqlite"),
    "aiosqlite": ("sqlite_files", "sqlite"),
}
_LIKE_ANOTHER = {
    "psycopg": "asyncpg",
    "psycopg2": "asyncpg",
    "asyncmy": "PyMySQL",
    "pysqlite": "aiosqlite",
}
_ON_ONE = pytest.mark.parametrize("make", ["asyncpg"], indirect=True)


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.repeats(f"tested with {_LIKE_ANOTHER[name]}"))
        if name in _LIKE_ANOTHER
        else name
        for name in DRIVERS
    ]
)
def make(request: pytest.FixtureRequest) -> Callable[[], Database]:
    fixture, dialect = DRIVERS[request.param]
    server = request.getfixturevalue(fixture)

    def made() -> Database:
        url = server.create_database(f"alembic_{next(_numbers)}").partition("?")[0]
        return Database(dialect, url.replace(":", f"+{request.param}:", 1))

    return made


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("include_schemas", ["", "1"], ids=["one schema", "include_schemas"])
def test_up_check_and_down(
    project: Project, make: Callable[[], Database], include_schemas: str
) -> None:
    database = make()
    options = {"INCLUDE_SCHEMAS": include_schemas}
    assert project.alembic(database, "upgrade", "head", variables=options) == ""
    with database.queue() as queue:
        queue.publish({"order": 1})
        assert len(queue.claim()) == 1
        found = [one for one in queue.diagnose() if one.check in ("schema", "shape")]
        assert {one.level for one in found} == {"ok"}, found
    told = project.alembic(database, "check", variables=options)
    assert told == "No new upgrade operations detected.\n"
    assert project.alembic(database, "downgrade", "base", variables=options) == ""
    assert database.version() is None
    assert project.alembic(database, "upgrade", "head", variables=options) == ""
    assert database.version() == 1


@_ON_ONE
def test_without_the_filter_autogenerate_would_drop_the_tables(
    project: Project, make: Callable[[], Database]
) -> None:
    database = make()
    project.alembic(database, "upgrade", "head")
    options = {"INCLUDE_SCHEMAS": "1", "WITHOUT_FILTER": "1"}
    assert "remove_table" in project.alembic(database, "check", fails=True, variables=options)


def test_an_old_and_a_fresh_database_end_at_the_same_schema(
    project: Project, make: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, fresh, half = make(), make(), make()
    project.alembic(old, "upgrade", "head")
    with old.queue() as queue:
        queue.publish("before")

    project.alembic(half, "upgrade", "head", next_package=True)
    assert half.version() == 1, "the revision names the version, not the package"

    project.add(*NEXT)
    for database in (old, fresh, half):
        project.alembic(database, "upgrade", "head", next_package=True)
    add_migration(monkeypatch, old.dialect)
    assert [database.version() for database in (old, fresh, half)] == [2, 2, 2]
    assert old.parts() == fresh.parts() == half.parts()
    with old.queue() as queue:
        assert [message.text() for message in queue.claim()] == ["before"]
        assert {f.level for f in queue.diagnose() if f.check in ("schema", "shape")} == {"ok"}

    project.alembic(old, "downgrade", "0002", next_package=True)
    assert old.version() == 2, "an older Laneway works on a newer schema"
    project.alembic(old, "upgrade", "head", next_package=True)
    project.alembic(old, "downgrade", "base", next_package=True)
    assert old.version() is None


@_ON_ONE
def test_what_was_installed_by_other_means_stays(
    project: Project, make: Callable[[], Database]
) -> None:
    database = make()
    with database.queue() as queue:
        queue.install()
        queue.publish("before")
    project.alembic(database, "upgrade", "head")
    with database.queue() as queue:
        assert [message.text() for message in queue.claim()] == ["before"]
        queue.uninstall()
    project.alembic(database, "downgrade", "base")
    assert database.version() is None


def test_offline(
    project: Project, make: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    online, offline = make(), make()
    project.add(*NEXT)
    project.alembic(online, "upgrade", "head", next_package=True)
    offline.run_script(project.alembic(offline, "upgrade", "head", "--sql", next_package=True))
    add_migration(monkeypatch, online.dialect)
    assert offline.version() == 2
    assert online.parts() == offline.parts()
    offline.run_script(project.alembic(offline, "downgrade", "0003:base", "--sql"))
    assert offline.version() is None


@_ON_ONE
def test_a_version_that_this_package_does_not_have(
    project: Project, make: Callable[[], Database]
) -> None:
    database = make()
    project.add(*NEXT)
    project.alembic(database, "upgrade", "head", fails=True)
    assert database.version() in (None, 1)


@_ON_ONE
def test_migrations_at_once(project: Project, make: Callable[[], Database]) -> None:
    """A client installs while Alembic does: one of them waits for the other."""
    database = make()

    async def both() -> None:
        def install() -> None:
            with database.queue() as queue:
                queue.install()

        await asyncio.gather(
            asyncio.to_thread(project.alembic, database, "upgrade", "head"),
            *(asyncio.to_thread(install) for _ in range(3)),
        )

    asyncio.run(both())
    assert database.version() == 1
