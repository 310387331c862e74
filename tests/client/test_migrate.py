"""Install and upgrade: any schema name, many processes at once, and as text."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from laneway import Queue, install_sql, upgrade_sql
from laneway.engines.postgresql.base import quoted
from laneway.engines.postgresql.schema import migrations
from laneway.errors import InvalidOption, SchemaMissing, SchemaTooNew
from laneway.migrate import uninstall_sql
from tests.place import Place

LATEST = migrations()[-1].number

NAMES = [
    "plain",
    "With Space",
    "it's",
    '"quoted"',
    "dollar $$ $1 $_$",
    "semi;colon--",
    "täglich 日本 🐎",
    "select",
    "x" * 63,
    "a.b",
    "%s %(x)s :x",
    "back\\slash",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_schema_name(database: str, name: str) -> None:
    with Queue(database, schema=name) as queue:
        queue.install()
        queue.publish(1, key="once")
        (message,) = queue.claim()
        message.complete()
        queue.upkeep()
        assert [entry.outcome for entry in queue.history(message.id)] == ["completed"]
        with psycopg.connect(database) as connection:
            connection.execute(f"drop schema {quoted(name)} cascade".encode())


def test_install_is_safe_to_repeat_and_at_once(place: Place) -> None:
    def install(_: int) -> int:
        with Queue(place.url, schema=place.schema) as queue:
            queue.install()
            return queue.schema_version()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(install, range(4))) == [LATEST] * 4


@pytest.mark.parametrize("name", NAMES)
def test_the_printed_sql_can_be_repeated(database: str, name: str) -> None:
    with psycopg.connect(database) as connection:
        for _ in range(2):
            connection.execute(install_sql(name).encode())
        connection.commit()
        with Queue(database, schema=name) as queue:
            assert queue.schema_version() == LATEST
            queue.publish(1)
            assert len(queue.claim()) == 1
        for _ in range(2):
            connection.execute(uninstall_sql(name).encode())
    with Queue(database, schema=name) as queue, pytest.raises(SchemaMissing):
        queue.schema_version()


def test_printed_and_run_at_once(place: Place) -> None:
    """A migration tool in one process, the client in another."""

    def install(number: int) -> None:
        if number % 2:
            with Queue(place.url, schema=place.schema) as queue:
                queue.install()
        else:
            with psycopg.connect(place.url) as connection:
                connection.execute(install_sql(place.schema).encode())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(install, range(4)))
    with Queue(place.url, schema=place.schema) as queue:
        assert queue.schema_version() == LATEST


@pytest.mark.parametrize("version", [0, -1, LATEST + 1, True, "1"])
def test_versions_that_do_not_exist(version: Any) -> None:
    with pytest.raises(InvalidOption, match=f"versions 1 to {LATEST}"):
        install_sql(version=version)


def test_the_printed_sql_installs(place: Place) -> None:
    with psycopg.connect(place.url) as connection:
        connection.execute(install_sql(place.schema).encode())
    with Queue(place.url, schema=place.schema) as queue:
        assert queue.schema_version() == LATEST
        queue.install()
        queue.upgrade()
        queue.publish(1)
        assert len(queue.claim()) == 1
    assert upgrade_sql(LATEST, place.schema) == ""


def test_an_interrupted_install_leaves_nothing(empty_place: Place) -> None:
    with psycopg.connect(empty_place.url) as connection:
        connection.execute(f"create schema {quoted(empty_place.schema)}".encode())
        connection.execute(
            f"create view {quoted(empty_place.schema)}.message_v1 as select 1".encode()
        )
    with Queue(empty_place.url, schema=empty_place.schema) as queue:
        with pytest.raises(Exception, match="message_v1"):
            queue.install()
        with pytest.raises(SchemaMissing):
            queue.schema_version()


def test_a_newer_schema_is_left_alone(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        with psycopg.connect(place.url) as connection:
            connection.execute(f"set search_path = {quoted(place.schema)}".encode())
            connection.execute("insert into migration (number, name) values (999, 'later')")
        with pytest.raises(SchemaTooNew, match="999"):
            queue.upgrade()
