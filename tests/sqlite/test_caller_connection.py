"""Publish and settle on the caller's connection to the same file: its transaction, its rollback."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from laneway import NewMessage, Queue
from laneway.errors import BacklogFull, SchemaMissing, UnsupportedConnection


class Rollback(Exception):
    """Leaves the transaction."""


@contextmanager
def with_sqlite3(path: Path) -> Iterator[Any]:
    """As most people have it: it begins by itself, with the first statement that writes."""
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


@contextmanager
def with_rows(path: Path) -> Iterator[Any]:
    # A row factory of the caller's must not matter.
    with with_sqlite3(path) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def as_dictionary(cursor: sqlite3.Cursor, row: Sequence[Any]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@contextmanager
def with_dictionaries(path: Path) -> Iterator[Any]:
    with with_sqlite3(path) as connection:
        connection.row_factory = as_dictionary
        yield connection
        assert connection.execute("select 1 as one").fetchone() == {"one": 1}


@contextmanager
def with_bytes(path: Path) -> Iterator[Any]:
    with with_sqlite3(path) as connection:
        connection.text_factory = bytes
        yield connection
        assert connection.execute("select 'text'").fetchone() == (b"text",)


@contextmanager
def with_begin(path: Path) -> Iterator[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        try:
            yield connection
        except BaseException:
            connection.execute("rollback")
            raise
        connection.execute("commit")


@contextmanager
def with_session(path: Path) -> Iterator[Any]:
    sqlalchemy, orm = pytest.importorskip("sqlalchemy"), pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    try:
        with orm.Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@contextmanager
def with_sqlalchemy_connection(path: Path) -> Iterator[Any]:
    engine = pytest.importorskip("sqlalchemy").create_engine(f"sqlite:///{path}")
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def with_listeners(path: Path) -> Iterator[Any]:
    """SQLAlchemy's own BEGIN instead of the driver's; it comes with the first statement."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")

    @sqlalchemy.event.listens_for(engine, "connect")  # type: ignore[untyped-decorator]
    def connect(driver: sqlite3.Connection, record: object) -> None:
        driver.isolation_level = None

    @sqlalchemy.event.listens_for(engine, "begin")  # type: ignore[untyped-decorator]
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("begin immediate")

    try:
        with engine.connect() as connection:
            yield connection
            connection.commit()
    finally:
        engine.dispose()


@contextmanager
def with_django(path: Path) -> Iterator[Any]:
    from django.db import transaction

    with django_connection(path) as connection, transaction.atomic(using=connection.alias):
        yield connection


@contextmanager
def django_connection(path: Path) -> Iterator[Any]:
    django = pytest.importorskip("django")
    from django.conf import settings
    from django.db import connections

    if not settings.configured:
        settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3"}})
        django.setup()
    alias = "laneway sqlite"
    new = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}
    connections.databases[alias] = connections.configure_settings({"default": {}, alias: new})[
        alias
    ]
    try:
        yield connections[alias]
    finally:
        connections[alias].close()
        del connections[alias], connections.databases[alias]


class Protocol:
    """The one method of laneway.Executor, on a driver that nobody knows."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Sequence[Any]]:
        named = {str(number): value for number, value in enumerate(params, 1)}
        return self._connection.execute(sql, named).fetchall()


@contextmanager
def with_protocol(path: Path) -> Iterator[Any]:
    with with_begin(path) as connection:
        yield Protocol(connection)


WAYS = [
    with_sqlite3,
    with_rows,
    with_dictionaries,
    with_bytes,
    with_begin,
    with_session,
    with_sqlalchemy_connection,
    with_listeners,
    with_django,
    with_protocol,
]
Way = Callable[[Path], AbstractContextManager[Any]]


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url) as queue:
        queue.install()
        yield queue


@pytest.mark.parametrize("way", WAYS)
def test_a_publish_commits_with_the_caller(queue: Queue, path: Path, way: Way) -> None:
    with way(path) as connection:
        queue.publish("one", key="k", headers={"a": 1}, connection=connection)
        queue.publish_many(
            [NewMessage(n, f"c{n % 3}", priority=n % 2) for n in range(50)], connection=connection
        )
        assert not queue.claim()
    assert len(queue.claim(100)) == 51
    assert queue.publish("again", key="k").existing


@pytest.mark.parametrize("way", WAYS)
def test_a_rollback_leaves_nothing(queue: Queue, path: Path, way: Way) -> None:
    queue.publish("kept")
    (message,) = queue.claim()
    with suppress(Rollback), way(path) as connection:
        queue.publish("gone", key="k", connection=connection)
        message.complete(connection=connection)
        raise Rollback
    assert not queue.claim()
    assert not queue.publish("again", key="k").existing
    message.complete()


@pytest.mark.parametrize("way", WAYS)
def test_every_settling_verb_commits_with_the_caller(queue: Queue, path: Path, way: Way) -> None:
    queue.publish_many(range(5))
    done, back, later, dead, held = queue.claim(5)
    with way(path) as connection:
        done.complete(connection=connection)
        back.give_back(connection=connection)
        later.defer(state={"page": 1}, connection=connection)
        dead.fail("no", connection=connection)
        held.extend(connection=connection)
    assert sorted(m.id for m in queue.claim(5)) == [back.id, later.id]
    assert [letter.id for letter in queue.dead_letters.list()] == [dead.id]
    assert [e.outcome for e in queue.history(done.id)] == ["completed"]


@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_leaves_the_transaction_alone(queue: Queue, path: Path, way: Way) -> None:
    queue.channel("full").limit(backlog=0)
    with way(path) as connection:
        with pytest.raises(BacklogFull):
            queue.publish(1, channel="full", connection=connection)
        queue.publish(2, connection=connection)
    assert [m.json() for m in queue.claim(10)] == [2]


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_schema_is_told(url: str, path: Path, way: Way) -> None:
    with (
        Queue(url, schema="absent") as queue,
        pytest.raises(SchemaMissing, match="install"),
        way(path) as connection,
    ):
        queue.publish(1, connection=connection)


def test_without_a_transaction_it_is_refused(queue: Queue, path: Path) -> None:
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
        pytest.raises(UnsupportedConnection, match="begin a transaction"),
    ):
        queue.publish(1, connection=connection)
    with (
        django_connection(path) as django,
        pytest.raises(UnsupportedConnection, match="atomic"),
    ):
        queue.publish(1, connection=django)
    assert not queue.claim()


@pytest.mark.parametrize("of_the_engine", [True, False])
@pytest.mark.parametrize("way", ["Connection", "Session"])
def test_sqlalchemy_in_autocommit_is_refused(
    queue: Queue, path: Path, way: str, of_the_engine: bool
) -> None:
    sqlalchemy, orm = pytest.importorskip("sqlalchemy"), pytest.importorskip("sqlalchemy.orm")
    option = {"isolation_level": "AUTOCOMMIT"}
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", **(option if of_the_engine else {}))
    if not of_the_engine:
        engine = engine.execution_options(**option)
    with (
        engine.connect() if way == "Connection" else orm.Session(engine) as connection,
        pytest.raises(UnsupportedConnection, match="AUTOCOMMIT"),
    ):
        queue.publish(1, connection=connection)
    engine.dispose()
    assert not queue.claim()


def test_a_cursor_is_refused_and_holds_no_lock(queue: Queue, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        with pytest.raises(UnsupportedConnection, match="pass the connection"):
            queue.publish(1, connection=connection.cursor())
        assert not connection.in_transaction


def test_the_callers_own_rows_commit_with_it(queue: Queue, path: Path) -> None:
    with with_sqlite3(path) as connection:
        connection.execute("create table orders (id integer primary key)")
        connection.execute("insert into orders values (1)")
        queue.publish({"order": 1}, connection=connection)
        connection.rollback()
        connection.execute("insert into orders values (2)")
        queue.publish({"order": 2}, connection=connection)
    assert [m.json() for m in queue.claim(10)] == [{"order": 2}]


def test_a_connection_of_another_database_is_refused(database: str) -> None:
    with (
        Queue(database) as queue,
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(UnsupportedConnection, match="on postgresql"),
    ):
        queue.publish("x", connection=connection)


def test_sqlalchemy_on_another_database_is_refused(queue: Queue, database: str) -> None:
    url = database.replace("postgresql:", "postgresql+psycopg:")
    engine = pytest.importorskip("sqlalchemy").create_engine(url)
    with (
        engine.connect() as connection,
        pytest.raises(UnsupportedConnection, match="another database, on sqlite"),
    ):
        queue.publish("x", connection=connection)
    engine.dispose()
