"""Install and upgrade: any schema name, many processes at once, and as text."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from laneway import Queue, install_sql, upgrade_sql
from laneway.engines.postgresql.base import quoted
from laneway.engines.postgresql.schema import migrations
from laneway.errors import SchemaMissing, SchemaTooNew
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


def test_an_interrupted_install_leaves_nothing(place: Place) -> None:
    with psycopg.connect(place.url) as connection:
        connection.execute(f"create schema {quoted(place.schema)}".encode())
        connection.execute(f"create view {quoted(place.schema)}.message_v1 as select 1".encode())
    with Queue(place.url, schema=place.schema) as queue:
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
