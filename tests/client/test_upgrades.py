"""Upgrades on every database: from this version to a made-up next one."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import Any

import psycopg
import pytest

from laneway import Queue, upgrade_sql
from laneway.drivers.sqlite.url import read_url
from laneway.engines.mysql.schema import _statements
from tests.model.mysql import connect
from tests.next_version import add_migration
from tests.stores import STORES, Databases

_numbers = count(1)
_DIALECTS = {"server": "postgresql", "mariadb": "mysql", "sqlite_files": "sqlite"}
_FIXTURES = [store.fixture for store in STORES.values() if store.fixture in _DIALECTS]


class Installed:
    """This version, with one message in it; ``next`` is the number of the next one."""

    def __init__(self, dialect: str, url: str, add: Callable[[], int]) -> None:
        self.dialect, self.url, self._add = dialect, url, add
        with self.client() as queue:
            queue.install()
            queue.publish("before", key="k")
            self.version = queue.schema_version()
        self.next = add()

    def client(self) -> Queue:
        return Queue(self.url, upkeep_every=None)

    def connection(self) -> Any:
        if self.dialect == "postgresql":
            return psycopg.connect(self.url)
        if self.dialect == "mysql":
            return connect(self.url, autocommit=True)
        return sqlite3.connect(read_url(self.url).path)

    def parts(self) -> list[str]:
        """What is sent to the server one after the other; on MySQL each commits by itself, and the
        last one records that all were run."""
        text = upgrade_sql(self.version, dialect=self.dialect)
        if self.dialect == "mysql":
            return _statements(text)[:-1]
        return [text] if self.dialect == "postgresql" else ["begin", *text.split(";\n")]

    def is_upgraded(self) -> None:
        with self.client() as queue:
            assert queue.schema_version() == self.next
            assert {f.level for f in queue.diagnose() if f.check in ("schema", "shape")} == {"ok"}
            assert queue.publish("again", key="k").existing
            assert [message.text() for message in queue.claim(10)] == ["before"]


@pytest.fixture(params=_FIXTURES)
def installed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installed]:
    databases: Databases = request.getfixturevalue(request.param)
    dialect = _DIALECTS[request.param]
    url = databases.create_database(f"upgraded {next(_numbers)}")
    yield Installed(dialect, url, lambda: add_migration(monkeypatch, dialect))


def test_an_upgrade_applies_what_is_missing(installed: Installed) -> None:
    with installed.client() as queue:
        assert queue.schema_version() == installed.version
        assert "fail" in {f.level for f in queue.diagnose() if f.check == "schema"}
        queue.upgrade()
        queue.upgrade()
        queue.install()
    installed.is_upgraded()


def test_upgrades_at_once(installed: Installed) -> None:
    def upgrade(_: int) -> int:
        with installed.client() as queue:
            queue.upgrade()
            return queue.schema_version()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(upgrade, range(4))) == [installed.next] * 4
    installed.is_upgraded()


def test_an_interrupted_upgrade_is_run_again(installed: Installed) -> None:
    """Nothing of it is left where changes of tables are transactional; elsewhere the rest is
    added."""
    parts = installed.parts()
    for sent in range(1, len(parts) + 1):
        with closing(installed.connection()) as killed, closing(killed.cursor()) as cursor:
            for text in parts[:sent]:
                cursor.execute(text)
        with installed.client() as queue:
            assert queue.schema_version() == installed.version
    with installed.client() as queue:
        queue.upgrade()
    installed.is_upgraded()


def test_what_an_upgrade_brought_is_repaired(installed: Installed) -> None:
    prefix = {"postgresql": "laneway.", "mysql": "laneway_", "sqlite": "laneway_"}
    name = prefix[installed.dialect]
    lost = [f"drop view {name}note_v1", f"drop table {name}made_up"]
    if installed.dialect == "postgresql":
        lost += ["alter table laneway.message drop column made_up"]
    elif installed.dialect == "sqlite":
        lost += ["drop index laneway_message_made_up"]
    with installed.client() as queue:
        queue.upgrade()
        with closing(installed.connection()) as connection, closing(connection.cursor()) as cursor:
            for text in lost:
                cursor.execute(text)
            connection.commit()
        assert "fail" in {f.level for f in queue.diagnose() if f.check == "shape"}
        assert all(one.done for one in queue.repair())
    installed.is_upgraded()
