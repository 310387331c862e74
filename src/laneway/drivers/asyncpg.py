"""asyncpg on a pool of our own: autocommit, so that one statement is one round trip; and a
listener."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg

from laneway.errors import LanewayError
from laneway.plan import Plan, Row, Statement

from .deadline import (
    CALL_TIMEOUT,
    CONNECT_TIMEOUT,
    PING_TIMEOUT,
    AsyncDeadline,
    keep_alive,
)
from .errors import (
    DEADLOCK,
    NOT_READ_COMMITTED,
    WrongServer,
    is_away,
    may_be_read_only,
    never_ran,
    sqlstate,
    translated,
    unreadable,
)
from .listener import Listener, ListenNotifier
from .postgresql import (
    BEGIN,
    IN_STANDBY,
    LOCK_TIMEOUT,
    PROBE,
    READ_COMMITTED,
    STANDBY,
    Pooled,
    lock_timeout,
    warn_of_pooler,
)
from .runner import AsyncHeld, AsyncPool, drive_async, patience

# The probe of a new connection, for asyncpg.


async def probe(connection: Any) -> tuple[int, str]:
    """The server process behind the connection, and its default isolation. By COPY, which is one
    step: a query of asyncpg's is two, and a pooler may send each to another server process."""
    parts: list[bytes] = []

    async def collect(data: bytes) -> None:
        parts.append(data)

    await connection.copy_from_query(PROBE, output=collect)
    process, isolation = b"".join(parts).decode().strip().split("\t")
    return int(process), isolation


T = TypeVar("T")

# The last is what a connection says that the server ended while it was idle.
_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    OSError,
    asyncpg.InternalClientError,
)
_PATIENCE = 5.0  # seconds
_BEGIN = Statement(BEGIN, script=True)
_COMMIT = Statement("COMMIT", script=True)
_ROLLBACK = Statement("ROLLBACK", script=True)


class AsyncpgRunner:
    """Connects at the first call. ``pooler`` is for PgBouncer in transaction mode: no prepared
    statements, and a transaction around each, because asyncpg parses and binds in two steps. A
    pooler that nobody announced is noticed and treated alike. One that ``lends`` connections leaves
    their sessions as they are.

    asyncpg's own pool makes a task and two timers for every connection that comes back, to reset
    what we never set: a quarter of what a small call costs.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int,
        pooler: bool,
        wait: float = 30,
        call_timeout: float | None = CALL_TIMEOUT,
        lends: bool = False,
    ) -> None:
        self._url = url
        self._address, self._connect_timeout = _address(url)
        self._call_timeout = call_timeout
        self._lends = lends
        self._statements = 0 if pooler else 100
        self._pool = AsyncPool(self._connect, _socket, _is_alive, pool_size, wait, _drop)
        # Also set when the server's default is another isolation than ours: claim needs it, and
        # keyed publishes would fail where they only have to wait.
        self._explicit = pooler

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        held = AsyncHeld(self._pool)
        try:
            result = await self._run_on(held, plan, atomic)
        except _ERRORS as found:
            error = self._explained(held.connection, found)
            await self._after(held, error)
            raise translated(error, self._url, sent=held.writes) from error
        except BaseException as error:
            await self._after(held, error)
            raise
        self._give(held.connection)
        return result

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A connection in a transaction that commits at the end, or rolls back if that raises."""
        connection = await self._pool.acquire()
        transaction = connection.transaction()
        try:
            if self._is_standby(connection):
                raise translated(WrongServer(STANDBY), self._url)
            with self._deadline(connection):
                await transaction.start()
            try:
                yield connection
            except BaseException:
                with self._deadline(connection):
                    await transaction.rollback()
                raise
            with self._deadline(connection):
                await transaction.commit()
        except Exception:
            # The caller's own, mostly: all was rolled back, the connection is as good as before.
            self._give(connection)
            raise
        except BaseException:
            await self._leave(connection)
            raise
        self._give(connection)

    async def close(self) -> None:
        for connection in self._pool.idle():
            await connection.close()
        await self._pool.close()

    async def _after(self, held: AsyncHeld, error: BaseException) -> None:
        if is_away(error):
            self._pool.close_idle()
        if held.connection is None:
            return
        if isinstance(error, (LanewayError, asyncpg.PostgresError, WrongServer)):
            self._give(held.connection)
        else:
            await self._leave(held.connection)

    def _give(self, connection: Any) -> None:
        """Who borrowed it may have begun something by hand; one to a standby is not kept."""
        if connection.is_closed() or connection.is_in_transaction() or self._is_standby(connection):
            self._pool.discard(connection)
        else:
            self._pool.release(connection)

    def _is_standby(self, connection: Any) -> bool:
        """A pooler tells what some connection of its own was told once."""
        if not self._statements or connection.is_closed():
            return False
        return getattr(connection.get_settings(), IN_STANDBY, None) == "on"

    def _explained(self, connection: Any, error: Exception) -> Exception:
        """A standby's refusals mean that the server is the wrong one."""
        if connection is None or not may_be_read_only(error) or not self._is_standby(connection):
            return error
        return WrongServer(str(error))

    async def _leave(self, connection: Any) -> None:
        """It may be in the middle of something, given up by its caller for one: asyncpg tells the
        server to stop before it closes."""
        try:
            with suppress(*_ERRORS, TimeoutError):
                await asyncio.shield(connection.close(timeout=_PATIENCE))
        finally:
            self._pool.discard(connection)

    async def _connect(self) -> Any:
        try:
            connection = await asyncpg.connect(
                self._address,
                statement_cache_size=self._statements,
                timeout=self._connect_timeout,
            )
        except ValueError:
            raise unreadable(self._url) from None
        keep_alive(_socket(connection))
        try:
            with AsyncDeadline(connection._transport, CONNECT_TIMEOUT):
                process, isolation = await probe(connection)
                if self._statements and process == connection.get_server_pid():
                    await self._limit(connection)
        except BaseException:
            connection.terminate()
            raise
        if isolation != READ_COMMITTED:
            self._explicit = True
        if process == connection.get_server_pid() or not self._statements:
            return connection
        connection.terminate()
        self._statements, self._explicit = 0, True
        warn_of_pooler(self._url)
        return await self._connect()

    async def _limit(self, connection: Any) -> None:
        if not self._lends and self._call_timeout is not None:
            await connection.fetch(LOCK_TIMEOUT, lock_timeout(self._call_timeout))

    async def _run_on(self, held: AsyncHeld, plan: Plan[T], atomic: bool) -> T:
        async def execute_alone(statement: Statement) -> Sequence[Row]:
            held.writes = held.writes or not statement.reads
            try:
                return await self._execute_alone(held.connection, statement)
            except _ERRORS as found:
                error = self._explained(held.connection, found)
                if sqlstate(error) == DEADLOCK:  # the server has undone it
                    return await self._execute_alone(held.connection, statement)
                if not ((statement.reads and is_away(error)) or never_ran(error)):
                    raise
            await held.replace()
            return await self._execute_alone(held.connection, statement)

        connection = await held.take()
        if not atomic:
            return await drive_async(plan, execute_alone)

        async def execute(statement: Statement) -> Sequence[Row]:
            return await self._execute(connection, statement)

        try:
            await self._execute(connection, _BEGIN)
        except _ERRORS as error:
            if not never_ran(error):
                raise
            connection = await held.replace()
            await self._execute(connection, _BEGIN)
        try:
            result = await drive_async(plan, execute)
        except BaseException:
            await self._roll_back(connection)
            raise
        held.writes = True
        await self._execute(connection, _COMMIT)
        return result

    async def _execute_alone(self, connection: Any, statement: Statement) -> Sequence[Row]:
        if not self._explicit or statement.outside:
            try:
                return await self._execute(connection, statement)
            except asyncpg.PostgresError as error:
                if sqlstate(error) != NOT_READ_COMMITTED:
                    raise
                self._explicit = True
        await self._execute(connection, _BEGIN)
        try:
            rows = await self._execute(connection, statement)
        except BaseException:
            await self._roll_back(connection)
            raise
        await self._execute(connection, _COMMIT)
        return rows

    async def _execute(self, connection: Any, statement: Statement) -> Sequence[Row]:
        if statement.primary and self._is_standby(connection):
            raise WrongServer(STANDBY)
        with AsyncDeadline(connection._transport, patience(statement, self._call_timeout)):
            if statement.script:
                await connection.execute(statement.sql)
                return ()
            if statement.copy:
                # The public way writes the COPY itself, from the names of table and columns.
                await connection._copy_in(statement.sql, _pieces(statement.params), None)
                return ()
            return await connection.fetch(statement.sql, *statement.params)  # type: ignore[no-any-return]

    async def _roll_back(self, connection: Any) -> None:
        if not connection.is_closed():
            await self._execute(connection, _ROLLBACK)

    def _deadline(self, connection: Any) -> AsyncDeadline:
        return AsyncDeadline(connection._transport, self._call_timeout)


def _address(url: str) -> tuple[str, float]:
    """Without ``connect_timeout``, which asyncpg would send to the server; and its seconds."""
    place, _, query = url.partition("?")
    options = [option for option in query.split("&") if option]
    kept = [option for option in options if not option.startswith("connect_timeout=")]
    given = [float(option.partition("=")[2]) for option in options if option not in kept]
    address = "?".join([place, "&".join(kept)]) if kept else place
    return address, next((seconds for seconds in given if seconds > 0), CONNECT_TIMEOUT)


async def _pieces(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _socket(connection: Any) -> Any:
    if connection.is_closed():
        return None
    return connection._transport.get_extra_info("socket")  # there is no public name for it


async def _is_alive(connection: Any) -> bool:
    try:
        with AsyncDeadline(connection._transport, PING_TIMEOUT):
            await connection.execute("select 1")
    except _ERRORS:
        return False
    return True


def _drop(connection: Any) -> None:
    connection.terminate()


class AsyncpgListener:
    """An asyncpg connection that listens."""

    def __init__(self, connection: Any, channel: str) -> None:
        self._connection = connection
        self._channel = channel
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    @classmethod
    async def open(cls, url: str, channel: str) -> "AsyncpgListener":
        connection = await asyncpg.connect(_address(url)[0], statement_cache_size=0)
        listener = cls(connection, channel)
        try:
            process, _ = await probe(connection)
            if process != connection.get_server_pid():
                raise Pooled
            await connection.add_listener(channel, listener._note)
        except BaseException:
            await connection.close()
            raise
        return listener

    def _note(self, connection: Any, process: int, channel: str, payload: str) -> None:
        self._heard.put_nowait(payload)

    async def receive(self, seconds: float) -> list[str]:
        try:
            async with asyncio.timeout(seconds):
                heard = [await self._heard.get()]
        except TimeoutError:
            return []
        while not self._heard.empty():
            heard.append(self._heard.get_nowait())
        return heard

    async def notify(self, payload: str) -> None:
        await self._connection.execute("SELECT pg_notify($1, $2)", self._channel, payload)

    async def probe(self) -> None:
        await self._connection.execute("SELECT 1")

    async def close(self) -> None:
        self._connection.terminate()


def asyncpg_notifier(url: str, channel: str, wanted: frozenset[str]) -> ListenNotifier:
    async def connect() -> Listener:
        return await AsyncpgListener.open(url, channel)

    return ListenNotifier(connect, wanted)
