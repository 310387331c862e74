"""The caller's own transaction, on the driver under test."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Caller:
    """A connection that belongs to the case, inside a transaction that the case ends."""

    def __init__(
        self,
        connection: object,
        execute: Callable[[str], Awaitable[Any]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.connection = connection
        self._execute = execute
        self._close = close

    async def __aenter__(self) -> "Caller":
        await self._execute("begin")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def commit(self) -> None:
        await self._execute("commit")

    async def rollback(self) -> None:
        await self._execute("rollback")

    async def savepoint(self) -> None:
        await self._execute("savepoint here")

    async def rollback_to_savepoint(self) -> None:
        await self._execute("rollback to savepoint here")

    async def works(self) -> bool:
        """Whether the transaction still takes statements."""
        await self._execute("select 1")
        return True


async def psycopg_async(url: str) -> Caller:
    import psycopg

    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)

    async def execute(text: str) -> None:
        await connection.execute(text.encode())

    return Caller(connection, execute, connection.close)


async def psycopg_sync(url: str) -> Caller:
    import psycopg

    connection = await asyncio.to_thread(lambda: psycopg.connect(url, autocommit=True))

    async def execute(text: str) -> None:
        await asyncio.to_thread(connection.execute, text.encode())

    async def close() -> None:
        connection.close()

    return Caller(connection, execute, close)


async def asyncpg(url: str) -> Caller:
    import asyncpg

    connection = await asyncpg.connect(url)
    return Caller(connection, connection.execute, connection.close)


async def sqlite3_sync(url: str) -> Caller:
    import sqlite3

    from laneway.drivers.sqlite.url import read_url

    path = read_url(url).path
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    async def execute(text: str) -> None:
        connection.execute(text)

    async def close() -> None:
        connection.close()

    return Caller(connection, execute, close)


async def aiosqlite(url: str) -> Caller:
    import aiosqlite

    from laneway.drivers.sqlite.url import read_url

    connection = await aiosqlite.connect(read_url(url).path, isolation_level=None)
    return Caller(connection, connection.execute, connection.close)


async def pymysql(url: str) -> Caller:
    import pymysql

    from laneway.drivers.mysql.url import connect_options, database_of

    options = connect_options(url) | {"database": database_of(url)}
    connection = await asyncio.to_thread(lambda: pymysql.connect(**options))

    def run(text: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(text)

    async def execute(text: str) -> None:
        await asyncio.to_thread(run, text)

    async def close() -> None:
        connection.close()

    return Caller(connection, execute, close)


async def asyncmy(url: str) -> Caller:
    import asyncmy

    from laneway.drivers.mysql.url import connect_options, database_of

    connection = await asyncmy.connect(database=database_of(url), **connect_options(url))

    async def execute(text: str) -> None:
        async with connection.cursor() as cursor:
            await cursor.execute(text)

    async def close() -> None:
        await connection.ensure_closed()

    return Caller(connection, execute, close)
