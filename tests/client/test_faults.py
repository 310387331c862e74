"""What goes wrong between us and the database, and what callers are told."""

import asyncio
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pymysql
import pytest

from laneway import AsyncQueue, Queue, Worker
from laneway.dev.embedded import EmbeddedPostgres, PgBouncer, pgbouncer_binary
from laneway.drivers import postgresql
from laneway.drivers.errors import masked, translated
from laneway.drivers.mysql.url import connect_options
from laneway.errors import ConnectionUnavailable, DatabaseFailed
from tests.place import Place

SCHEMES = ["postgresql", "postgresql+asyncpg"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:pa%20ss@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:p@ss@h/db", "postgresql://u:***@h/db"),
        (
            "postgresql://h/db?user=u&password=x&port=1",
            "postgresql://h/db?user=u&password=***&port=1",
        ),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db"),
        ("mysql://u@server:hunter22@h/db", "mysql://u@server:***@h/db"),
        ("mysql://u/x:hunter 22@h/db", "mysql://u/x:***@h/db"),
        ("postgresql://u@h/db?password=hunter 22", "postgresql://u@h/db?password=***"),
        (
            "postgresql://u@h/db?sslpassword=hunter&port=1",
            "postgresql://u@h/db?sslpassword=***&port=1",
        ),
        ("host=h password='hunter 22' user=u", "host=h password=*** user=u"),
    ],
)
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_a_password_in_a_drivers_text_is_masked() -> None:
    url = "postgresql://u:pa%20ss@h/db?password=other"
    error = translated(psycopg.OperationalError("with pa ss, pa%20ss and other"), url)
    assert str(error).endswith("with ***, *** and ***")


@pytest.mark.parametrize("encoding", ["LATIN1", "UTF8"])
def test_names_do_not_depend_on_the_encoding(server: EmbeddedPostgres, encoding: str) -> None:
    """Of the database, and of its clients' sessions."""
    name = f"names in {encoding}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(
            f"create database \"{name}\" encoding '{encoding}' template template0".encode()
        )
    url = f"{server.url(name)}?client_encoding=latin1"
    with Queue(url) as queue, psycopg.connect(url) as connection:
        queue.install()
        queue.publish("mine", channel="tenänt", kind="gruß")
        queue.publish("yours", channel="tenänt", kind="gruß", connection=connection)
        connection.commit()
        assert {(m.channel, m.kind) for m in queue.claim(2)} == {("tenänt", "gruß")}


def test_nobody_listens() -> None:
    with (
        Queue("postgresql://u:secret@127.0.0.1:1/x") as queue,
        pytest.raises(ConnectionUnavailable, match=r"u:\*\*\*@127\.0\.0\.1:1/x.*refused") as raised,
    ):
        queue.publish(1)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nobody_listens_async(scheme: str) -> None:
    async def main() -> None:
        async with AsyncQueue(f"{scheme}://u:secret@127.0.0.1:1/x") as queue:
            with pytest.raises(ConnectionUnavailable) as raised:
                await queue.publish(1)
            assert "secret" not in str(raised.value)

    asyncio.run(main())


def end_all_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )


@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
def test_another_default_isolation(place: Place, isolation: str) -> None:
    value = isolation.replace(" ", "\\ ")  # in a list of options a space must be escaped
    option = quote(f"-c default_transaction_isolation={value}")
    with Queue(f"{place.url}?options={option}", schema=place.schema) as queue:
        queue.install()
        queue.publish(1)
        (message,) = queue.claim()
        message.complete()


def test_another_default_isolation_on_asyncpg(place: Place, server: EmbeddedPostgres) -> None:
    url = server.create_database("serial").replace("postgresql", "postgresql+asyncpg", 1)
    with psycopg.connect(server.url("serial"), autocommit=True) as connection:
        connection.execute("alter database serial set default_transaction_isolation = serializable")

    async def main() -> None:
        async with AsyncQueue(url, schema=place.schema) as queue:
            await queue.install()
            await queue.publish(1)
            (message,) = await queue.claim()
            await message.complete()

    asyncio.run(main())


@pytest.mark.parametrize("scheme", [*SCHEMES, "mysql"])
def test_keyed_publishes_under_another_default_isolation(
    scheme: str, request: pytest.FixtureRequest
) -> None:
    """Two that meet at a key do not fail because the database's default is SERIALIZABLE."""
    url = serializable_database(scheme, request)

    async def main() -> None:
        async with AsyncQueue(url, group_commit=False) as queue:
            await queue.install()
            for turn in range(5):
                keys = [f"{turn} {n % 4}" for n in range(8)]
                results = await asyncio.gather(*(queue.publish(b"", key=key) for key in keys))
                assert sum(result.status == "published" for result in results) == 4
                claims = await asyncio.gather(*(queue.claim(2) for _ in range(4)))
                messages = [message for claim in claims for message in claim]
                await asyncio.gather(*(message.complete() for message in messages))

    asyncio.run(main())


def serializable_database(scheme: str, request: pytest.FixtureRequest) -> str:
    name = f"serializable {scheme}"
    if scheme == "mysql":
        server = request.getfixturevalue("mariadb")
        url: str = server.create_database(name)
        with pymysql.connect(**connect_options(url)) as connection, connection.cursor() as cursor:
            cursor.execute("set global transaction isolation level serializable")
        request.addfinalizer(lambda: server_default(url))
        return url
    url = request.getfixturevalue("server").create_database(name)
    with psycopg.connect(url, autocommit=True) as own:
        own.execute(
            f'alter database "{name}" set default_transaction_isolation = serializable'.encode()
        )
    return scheme + url.removeprefix("postgresql")


def server_default(url: str) -> None:
    with pymysql.connect(**connect_options(url)) as connection, connection.cursor() as cursor:
        cursor.execute("set global transaction isolation level repeatable read")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_call_that_was_given_up_costs_no_connection(place: Place, scheme: str) -> None:
    """It waits for another publish of its key; its caller does not."""

    async def main() -> None:
        url = scheme + place.url.removeprefix("postgresql")
        async with AsyncQueue(url, schema=place.schema, group_commit=False, pool_size=1) as queue:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await queue.publish(b"", key="taken")
            assert (await queue.publish(b"")).status == "published"

    with psycopg.connect(place.url) as other, Queue(place.url, schema=place.schema) as queue:
        queue.install()
        queue.publish(b"", key="taken", connection=other)
        asyncio.run(main())
        other.rollback()
        # None of those that were given up is there.
        assert [stats.waiting for stats in queue.stats()] == [1]


def test_the_database_refuses(place: Place) -> None:
    option = quote("-c default_transaction_read_only=on")
    with Queue(f"{place.url}?options={option}") as queue:
        with pytest.raises(DatabaseFailed) as raised:
            queue.install()
        assert raised.value.sqlstate == "25006"


@pytest.fixture(scope="module")
def bouncer(server: EmbeddedPostgres) -> Iterator[PgBouncer]:
    binary = pgbouncer_binary()
    if binary is None:
        pytest.skip("no pgbouncer here")
    with PgBouncer(binary, "127.0.0.1", server.port, pool_size=2) as running:
        yield running


def test_through_pgbouncer(place: Place, bouncer: PgBouncer) -> None:
    with Queue(bouncer.url("laneway_tests"), schema=place.schema, pooler=True) as queue:
        queue.install()
        for n in range(20):
            queue.publish(n)
            (message,) = queue.claim()
            message.complete()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_through_pgbouncer_async(place: Place, bouncer: PgBouncer, scheme: str) -> None:
    async def main() -> None:
        url = bouncer.url("laneway_tests").replace("postgresql", scheme, 1)
        async with AsyncQueue(url, schema=place.schema, pooler=True, group_commit=False) as queue:
            await queue.install()
            await asyncio.gather(*(queue.publish(n) for n in range(50)))
            claims = await asyncio.gather(*(queue.claim(10) for _ in range(10)))
            messages = [message for claim in claims for message in claim]
            await asyncio.gather(*(message.complete() for message in messages))

    asyncio.run(main())


def test_pgbouncer_that_nobody_announced(
    place: Place,
    bouncer: PgBouncer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several clients share two server connections: a statement that one of them prepared would
    be run by another."""
    monkeypatch.setattr(postgresql, "_warned", set())
    url = bouncer.url("laneway_tests")
    with Queue(url, schema=place.schema) as queue, Queue(url, schema=place.schema) as other:
        queue.install()
        for n in range(12):
            for client in (queue, other):
                client.publish(n)
                (message,) = client.claim()
                message.complete()
            other.stats()
        assert left_on_the_server(bouncer.url("laneway_tests")) == 0
    said = [record.getMessage() for record in caplog.records if record.name == "laneway"]
    assert len(said) == 1
    assert "pooler=True" in said[0]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pgbouncer_that_nobody_announced_async(
    place: Place, bouncer: PgBouncer, scheme: str
) -> None:
    """With a worker, which does not listen through a pooler either."""
    url = bouncer.url("laneway_tests").replace("postgresql", scheme, 1)

    async def main() -> list[int]:
        async with AsyncQueue(url, schema=place.schema, group_commit=False) as queue:
            await queue.install()
            await asyncio.gather(*(queue.publish(n, kind="note") for n in range(9)))
            worker = Worker(queue)
            done: list[int] = []

            @worker.handler
            async def note(payload: int) -> None:
                done.append(payload)

            await worker.serve(until_empty=True)
            return done

    assert sorted(asyncio.run(main())) == list(range(9))
    assert left_on_the_server(bouncer.url("laneway_tests")) == 0


def left_on_the_server(url: str) -> int:
    """Prepared statements and LISTENs on the two connections that all clients share."""
    found = 0
    with (
        psycopg.connect(url, prepare_threshold=None) as first,
        psycopg.connect(url, prepare_threshold=None) as second,
    ):
        for connection in (first, second):  # both in a transaction at once
            row = connection.execute(
                "select (select count(*) from pg_prepared_statements)"
                " + (select count(*) from pg_listening_channels())"
            ).fetchone()
            assert row is not None
            found += row[0]
    return found
