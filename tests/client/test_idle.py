"""Connections that end while nobody uses them: the next call does not notice."""

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest

from laneway import AsyncQueue, Queue
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres
from laneway.drivers import runner
from laneway.drivers.asyncpg import AsyncpgRunner
from laneway.drivers.mysql.url import connect_options
from laneway.drivers.psycopg.aio import AsyncPsycopgRunner
from laneway.drivers.psycopg.sync import PsycopgRunner
from laneway.errors import ConnectionUnavailable
from laneway.plan import Plan, Row, Statement
from tests.client.test_faults import end_all_connections
from tests.place import Place, fresh_schema

POSTGRESQL = ["postgresql", "postgresql+asyncpg"]


@pytest.fixture(scope="module")
def mariadb_url(mariadb: EmbeddedMariaDB) -> str:
    return mariadb.create_database("idle")


def kill_all_connections(url: str) -> None:
    with pymysql.connect(**connect_options(url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "select id from information_schema.processlist where db = 'idle' "
            "and id <> connection_id()"
        )
        for (number,) in cursor.fetchall():
            cursor.execute(f"kill {number}")
    time.sleep(0.1)  # until their threads have closed the sockets


def use_after(queue: Queue, end: Callable[[], None]) -> None:
    queue.install()
    for verb in (lambda: queue.publish(1).id, queue.claim, queue.stats):
        end()
        assert verb()


def use_after_async(url: str, schema: str, end: Callable[[], None]) -> None:
    """Several connections, and no turn of the loop between their end and the next call."""

    async def main() -> None:
        async with AsyncQueue(url, schema=schema, group_commit=False) as queue:
            await queue.install()
            await asyncio.gather(*(queue.stats() for _ in range(5)))
            end()
            await asyncio.gather(*(queue.publish(n) for n in range(5)))
            for _ in range(3):
                end()
                await asyncio.sleep(0.05)
                assert await queue.claim()

    asyncio.run(main())


def test_the_server_ends_idle_connections(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        use_after(queue, lambda: end_all_connections(place.url))


@pytest.mark.parametrize("scheme", POSTGRESQL)
def test_the_server_ends_idle_connections_async(place: Place, scheme: str) -> None:
    url = scheme + place.url.removeprefix("postgresql")
    use_after_async(url, place.schema, lambda: end_all_connections(place.url))


def test_mariadb_ends_idle_connections(mariadb_url: str) -> None:
    with Queue(mariadb_url, schema=fresh_schema()) as queue:
        use_after(queue, lambda: kill_all_connections(mariadb_url))


def test_mariadb_ends_idle_connections_async(mariadb_url: str) -> None:
    use_after_async(mariadb_url, fresh_schema(), lambda: kill_all_connections(mariadb_url))


class Firewall:
    """Forwards to a port. After :meth:`forget`, whoever sends on an old connection gets a reset
    and nothing else."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self._old: set[socket.socket] = set()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = url.replace(f":{parts.port}", f":{port}", 1)
        threading.Thread(target=self._accept, daemon=True).start()

    def forget(self) -> None:
        self._old |= self._open

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._open.add(client)
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(65_536):
                if client in self._old:
                    break
                server.sendall(data)
        except OSError:
            pass
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # a thread waits for it: close() alone does nothing
        server.close()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(65_536):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


@pytest.fixture
def walled(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Firewall]]:
    walls: list[Firewall] = []

    def start(url: str) -> Firewall:
        walls.append(Firewall(url))
        return walls[-1]

    yield start
    for wall in walls:
        wall.close()


@pytest.mark.parametrize("store", ["PostgreSQL", "MariaDB"])
def test_a_firewall_forgets_idle_connections(
    store: str,
    walled: Callable[[str], Firewall],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """They look alive until something is sent: those that were idle for long are asked first."""
    monkeypatch.setattr(runner, "CHECK_AFTER", 0.1)
    wall = walled(request.getfixturevalue("database" if store == "PostgreSQL" else "mariadb_url"))

    def forget() -> None:
        wall.forget()
        time.sleep(0.2)

    with Queue(wall.url, schema=fresh_schema()) as queue:
        use_after(queue, forget)


@pytest.mark.parametrize("scheme", [*POSTGRESQL, "mysql"])
def test_a_firewall_forgets_idle_connections_async(
    scheme: str,
    walled: Callable[[str], Firewall],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr(runner, "CHECK_AFTER", 0.1)
    fixture = "mariadb_url" if scheme == "mysql" else "database"
    wall = walled(request.getfixturevalue(fixture))

    def forget() -> None:
        wall.forget()
        time.sleep(0.2)

    url = scheme + wall.url[wall.url.index(":") :]
    use_after_async(url, fresh_schema(), forget)


def test_what_only_reads_is_repeated(place: Place, walled: Callable[[str], Firewall]) -> None:
    """A reset that nobody could foresee: a read is sent again, a write is not."""
    wall = walled(place.url)
    with Queue(wall.url, schema=place.schema) as queue:
        queue.install()
        queue.publish(1)
        wall.forget()
        assert [stats.waiting for stats in queue.stats()] == [1]
        wall.forget()
        with pytest.raises(ConnectionUnavailable, match="may or may not have been carried out"):
            queue.publish(2)
        assert queue.publish(3).id


@pytest.mark.repeats("tested with sync psycopg")
def test_what_only_reads_is_repeated_on_asyncpg(
    place: Place, walled: Callable[[str], Firewall]
) -> None:
    wall = walled(place.asyncpg_url)

    async def main() -> None:
        async with AsyncQueue(wall.url, schema=place.schema) as queue:
            await queue.install()
            await queue.publish(1)
            wall.forget()
            assert [stats.waiting for stats in await queue.stats()] == [1]
            wall.forget()
            with pytest.raises(ConnectionUnavailable, match="may or may not have been"):
                await queue.publish(2)
            assert (await queue.publish(3)).id

    asyncio.run(main())


def test_a_transaction_that_did_not_commit_is_repeated(
    mariadb_url: str, walled: Callable[[str], Firewall]
) -> None:
    """On MariaDB every verb is a transaction: what was lost before the commit never happened."""
    wall = walled(mariadb_url)
    with Queue(wall.url, schema=fresh_schema()) as queue:
        queue.install()
        queue.publish(1)
        wall.forget()
        queue.publish(2)
        wall.forget()
        assert len(queue.claim(10)) == 2


def test_nothing_is_asked_of_busy_connections(place: Place) -> None:
    """A connection that was used a moment ago is not checked by a round trip."""
    with Queue(place.url, schema=place.schema) as queue, psycopg.connect(place.url) as other:
        queue.install()
        for n in range(3):
            queue.publish(n)
        last = other.execute(
            "select query from pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid() and state = 'idle' order by state_change desc limit 1"
        ).fetchone()
        assert last is not None
        assert "publish" in last[0]


@pytest.mark.parametrize("scheme", POSTGRESQL)
def test_a_connection_that_is_asked_after_a_long_idle_time_is_used(
    place: Place, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the first thing that is ever sent on it, too."""
    monkeypatch.setattr(runner, "CHECK_AFTER", 0.0)

    async def main() -> None:
        url = place.url.replace("postgresql", scheme, 1)
        async with AsyncQueue(url, schema=place.schema, group_commit=False) as queue:
            await queue.install()
            pool = queue.database._runner._pool  # type: ignore[attr-defined]
            pool.release(await pool._connect())
            await pool._free.acquire()
            assert len(await asyncio.gather(*(queue.publish(n) for n in range(5)))) == 5

    asyncio.run(main())


def _late(runner: Any) -> Any:
    """Its connections are alive when they are taken, and not any more at the first statement."""
    execute, waits = runner._execute, [0.4]

    def wait_and_execute(*given: Any) -> Any:
        if waits:
            time.sleep(waits.pop())
        return execute(*given)

    runner._execute = wait_and_execute
    return runner


def _note(n: int) -> Plan[Sequence[Row]]:
    return (yield Statement(f"insert into noted values ({n}) returning n"))  # noqa: S608


@pytest.mark.parametrize("atomic", [False, True])
def test_a_session_that_ends_while_a_write_is_on_its_way(
    server: EmbeddedPostgres, atomic: bool
) -> None:
    """The server never saw the write, or the begin of its transaction: it is sent again, once."""
    url = server.create_database(f"idle race {atomic}")
    with psycopg.connect(url, autocommit=True) as eyes:
        eyes.execute("create table noted (n int)")
        eyes.execute(f"alter database \"idle race {atomic}\" set idle_session_timeout = '100ms'")
        sync = _late(PsycopgRunner(url, pool_size=1, pooler=False))
        sync.run(_note(0), atomic=atomic)
        sync.close()
        for n, kind in enumerate((AsyncPsycopgRunner, AsyncpgRunner), 1):
            asyncio.run(_noted(_late(kind(url, pool_size=1, pooler=False)), n, atomic))
        assert [n for (n,) in eyes.execute("select n from noted order by n")] == [0, 1, 2]


async def _noted(runner: AsyncPsycopgRunner | AsyncpgRunner, n: int, atomic: bool) -> None:
    await runner.run(_note(n), atomic=atomic)
    await runner.close()
