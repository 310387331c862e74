"""Publish and settle on the caller's connection: its transaction, its rollback."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from laneway import NewMessage, Queue
from laneway.contract import BATCH
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import (
    BacklogFull,
    DatabaseFailed,
    LanewayError,
    SchemaMissing,
    UnsupportedConnection,
)
from tests.place import Place, fresh_schema


class Rollback(Exception):
    """Leaves the transaction."""


@contextmanager
def with_psycopg(place: Place) -> Iterator[Any]:
    # A row factory of the caller's must not matter.
    with (
        psycopg.connect(place.url, row_factory=dict_row) as connection,
        connection.transaction(),
    ):
        yield connection


@contextmanager
def sqlalchemy_engine(url: str) -> Iterator[Any]:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def with_session(place: Place) -> Iterator[Any]:
    orm = pytest.importorskip("sqlalchemy.orm")
    with (
        sqlalchemy_engine(place.psycopg_url) as engine,
        orm.Session(engine) as session,
        session.begin(),
    ):
        yield session


@contextmanager
def with_scoped_session(place: Place) -> Iterator[Any]:
    orm = pytest.importorskip("sqlalchemy.orm")
    with sqlalchemy_engine(place.psycopg_url) as engine:
        session = orm.scoped_session(orm.sessionmaker(engine))
        try:
            with session.begin():
                yield session
        finally:
            session.remove()


@contextmanager
def with_sqlalchemy_connection(place: Place) -> Iterator[Any]:
    with sqlalchemy_engine(place.psycopg_url) as engine, engine.begin() as connection:
        yield connection


@contextmanager
def with_sqlalchemy_psycopg2(place: Place) -> Iterator[Any]:
    if find_spec("psycopg2") is None:
        pytest.skip("psycopg2 is not installed")
    url = place.url.replace("postgresql:", "postgresql+psycopg2:")
    with sqlalchemy_engine(url) as engine, engine.begin() as connection:
        yield connection


@contextmanager
def with_psycopg2(place: Place) -> Iterator[Any]:
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(place.url)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


@contextmanager
def with_psycopg2_dictionaries(place: Place) -> Iterator[Any]:
    psycopg2 = pytest.importorskip("psycopg2")
    extras = pytest.importorskip("psycopg2.extras")
    connection = psycopg2.connect(place.url, cursor_factory=extras.RealDictCursor)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


@contextmanager
def with_django(place: Place) -> Iterator[Any]:
    connections = django_connections(place)
    from django.db import transaction

    try:
        with transaction.atomic():
            yield connections["default"]
    finally:
        connections.close_all()


@contextmanager
def with_django_proxy(place: Place) -> Iterator[Any]:
    connections = django_connections(place)
    from django.db import connection, transaction

    try:
        with transaction.atomic():
            yield connection
    finally:
        connections.close_all()


def django_connections(place: Place) -> Any:
    django = pytest.importorskip("django")
    from django.conf import settings
    from django.db import connections

    info = psycopg.conninfo.conninfo_to_dict(place.url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": info["dbname"],
        "HOST": info["host"],
        "PORT": info["port"],
        "USER": info["user"],
    }
    if not settings.configured:
        settings.configure(USE_TZ=True)
        django.setup()
    # Other tests of this process may have had another one.
    connections.databases["default"] = connections.configure_settings({"default": database})[
        "default"
    ]
    if hasattr(connections._connections, "default"):
        del connections["default"]
    return connections


class Wrapped:
    """Any other driver, with the one method."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._cursor = psycopg.RawCursor(connection)

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Any]:
        return self._cursor.execute(sql.encode(), params).fetchall()


@contextmanager
def with_protocol(place: Place) -> Iterator[Any]:
    with psycopg.connect(place.url) as connection, connection.transaction():
        yield Wrapped(connection)


ADAPTERS = [
    with_psycopg,
    with_session,
    with_scoped_session,
    with_sqlalchemy_connection,
    with_sqlalchemy_psycopg2,
    with_psycopg2,
    with_psycopg2_dictionaries,
    with_django,
    with_django_proxy,
    with_protocol,
]
Open = Callable[[Place], AbstractContextManager[Any]]


@pytest.fixture(scope="module")
def odd(database: str) -> Place:
    """A schema, installed once, whose name trips whoever reads placeholders inside quotes."""
    place = Place(database, f'it\'s $1 :p1 %s 50% \\ "{fresh_schema()}"')
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
    return place


@pytest.fixture
def queue(odd: Place, request: pytest.FixtureRequest) -> Iterator[Queue]:
    with Queue(odd.url, schema=odd.schema, name=request.node.name) as queue:
        yield queue


@pytest.mark.parametrize("open_connection", ADAPTERS)
def test_everything_in_the_callers_transaction(
    odd: Place, queue: Queue, open_connection: Open
) -> None:
    with open_connection(odd) as connection:
        many = [
            NewMessage({"n": 1}, headers={"h": "ü%s:x"}, kind="k:%", key="a"),
            NewMessage("zwei %", priority=2),
            NewMessage(b"\0\xff", channel="other"),
            4,
            5,
        ]
        published = queue.publish_many(many, connection=connection)
        again = queue.publish(1, kind="k:%", key="a", connection=connection)
        assert again.existing and again.id == published[0].id
        assert not queue.claim()
    messages = {m.id: m for m in queue.claim(limit=10)}
    first, second, third, fourth, fifth = (messages[p.id] for p in published if p.id)
    assert (first.json(), first.headers, first.kind) == ({"n": 1}, {"h": "ü%s:x"}, "k:%")
    assert (second.text(), second.priority) == ("zwei %", 2)
    assert (third.payload, third.channel) == (b"\0\xff", "other")
    with open_connection(odd) as connection:
        first.complete(connection=connection)
        second.defer(state={"page": 1}, connection=connection)
        third.fail("broken", error=ValueError("x"), connection=connection)
        until = fourth.until
        assert fourth.extend(queue.settings().backoff_max, connection=connection) > until
        fifth.give_back(connection=connection)
    assert sorted(m.id for m in queue.claim(limit=10)) == sorted([second.id, fifth.id])
    assert len(queue.dead_letters.list(queue=queue.name)) == 1


@pytest.mark.parametrize("open_connection", ADAPTERS)
def test_rollback_leaves_nothing(odd: Place, queue: Queue, open_connection: Open) -> None:
    queue.publish("kept", channel="kept")
    (message,) = queue.claim()
    with pytest.raises(Rollback), open_connection(odd) as connection:
        queue.publish("gone", connection=connection)
        message.complete(connection=connection)
        raise Rollback
    assert not queue.claim()
    message.complete()
    assert queue.channel_stats(queue=queue.name) == []


@pytest.mark.parametrize("open_connection", ADAPTERS)
def test_a_refusal_leaves_the_transaction_alive(
    odd: Place, queue: Queue, open_connection: Open
) -> None:
    queue.channel("full").limit(backlog=0)
    with open_connection(odd) as connection:
        with pytest.raises(BacklogFull):
            queue.publish(1, channel="full", connection=connection)
        queue.publish(2, connection=connection)
    assert [m.json() for m in queue.claim(limit=10)] == [2]


@pytest.mark.parametrize("open_connection", ADAPTERS)
def test_a_missing_schema_says_so(empty_place: Place, open_connection: Open) -> None:
    queue = Queue(empty_place.url, schema=empty_place.schema)
    with pytest.raises(SchemaMissing), open_connection(empty_place) as connection:
        queue.publish(1, connection=connection)


@pytest.fixture(scope="module")
def snapshots(server: EmbeddedPostgres) -> Place:
    """In a database whose transactions are REPEATABLE READ."""
    url = server.create_database("caller_sync_snapshots")
    with psycopg.connect(url, autocommit=True) as connection:
        isolation = "default_transaction_isolation = 'repeatable read'"
        connection.execute(f"alter database caller_sync_snapshots set {isolation}".encode())
    place = Place(url, fresh_schema())
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        queue.publish("first", key="k")
    return place


@pytest.mark.parametrize("open_connection", ADAPTERS)
def test_what_laneway_refuses_is_its_own_error_and_all_else_the_drivers(
    snapshots: Place, open_connection: Open
) -> None:
    with (
        Queue(snapshots.url, schema=snapshots.schema) as queue,
        pytest.raises(Rollback),
        open_connection(snapshots) as connection,
    ):
        with pytest.raises(DatabaseFailed, match="laneway: this needs READ COMMITTED") as told:
            queue.publish(2, key="k", on_duplicate="replace", connection=connection)
        assert told.value.sqlstate == "25000" and told.value.__cause__ is not None
        with pytest.raises(Exception, match="current transaction is aborted") as raised:
            queue.publish(3, connection=connection)
        assert not isinstance(raised.value, LanewayError)
        raise Rollback


@contextmanager
def psycopg_in_autocommit(place: Place) -> Iterator[Any]:
    with psycopg.connect(place.url, autocommit=True) as connection:
        yield connection


@contextmanager
def psycopg2_in_autocommit(place: Place) -> Iterator[Any]:
    connection = pytest.importorskip("psycopg2").connect(place.url)
    connection.autocommit = True
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def sqlalchemy_in_autocommit(place: Place) -> Iterator[Any]:
    with (
        sqlalchemy_engine(place.psycopg_url) as engine,
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):
        yield connection


@contextmanager
def django_in_autocommit(place: Place) -> Iterator[Any]:
    connections = django_connections(place)
    try:
        yield connections["default"]
    finally:
        connections.close_all()


@pytest.mark.parametrize(
    "open_connection",
    [
        psycopg_in_autocommit,
        psycopg2_in_autocommit,
        sqlalchemy_in_autocommit,
        django_in_autocommit,
    ],
)
def test_what_is_no_single_statement_needs_a_transaction(
    odd: Place, queue: Queue, open_connection: Open
) -> None:
    with open_connection(odd) as connection:
        with pytest.raises(UnsupportedConnection, match="begin a transaction"):
            queue.publish_many([b""] * (BATCH + 1), connection=connection)
        assert queue.channel_stats(queue=queue.name) == []
        queue.publish_many([b""] * BATCH, connection=connection)
    with psycopg.connect(odd.url, autocommit=True) as connection, connection.transaction():
        queue.publish_many([b""] * (BATCH + 1), connection=connection)
    assert sum(n.waiting for n in queue.channel_stats(queue=queue.name)) == 2 * BATCH + 1


def test_errors_of_the_callers_connection_stay_its_own(place: Place) -> None:
    queue = Queue(place.url, schema=place.schema)
    connection = psycopg.connect(place.url)
    connection.close()
    with pytest.raises(psycopg.OperationalError):
        queue.publish(1, connection=connection)


def test_other_objects_are_refused(place: Place) -> None:
    queue = Queue(place.url, schema=place.schema)
    with pytest.raises(UnsupportedConnection, match="object with one method"):
        queue.publish(1, connection=object())

    class Waiting:
        async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Any]:
            return []

    with pytest.raises(UnsupportedConnection, match="use AsyncQueue"):
        queue.publish(1, connection=Waiting())


@pytest.mark.parametrize("cursor", [psycopg.RawCursor, psycopg.ClientCursor, psycopg.Cursor])
def test_cursors_are_refused(place: Place, cursor: Any) -> None:
    queue = Queue(place.url, schema=place.schema)
    with (
        psycopg.connect(place.url) as connection,
        pytest.raises(UnsupportedConnection, match="pass the connection"),
    ):
        queue.publish(1, connection=cursor(connection))


@pytest.mark.parametrize("open_connection", [with_psycopg2, with_django])
def test_cursors_of_other_drivers_are_refused(place: Place, open_connection: Open) -> None:
    queue = Queue(place.url, schema=place.schema)
    with (
        open_connection(place) as connection,
        connection.cursor() as cursor,
        pytest.raises(UnsupportedConnection, match="pass the connection"),
    ):
        queue.publish(1, connection=cursor)


@pytest.mark.parametrize("open_connection", [with_sqlalchemy_connection, with_sqlalchemy_psycopg2])
def test_what_is_below_sqlalchemy_is_refused(place: Place, open_connection: Open) -> None:
    queue = Queue(place.url, schema=place.schema)
    with (
        open_connection(place) as connection,
        pytest.raises(UnsupportedConnection, match="pass the Session or Connection"),
    ):
        queue.publish(1, connection=connection.connection)
