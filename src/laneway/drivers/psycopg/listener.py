"""A psycopg 3 connection that listens."""

from psycopg import AsyncRawCursor, sql

from laneway.drivers.listener import PATIENCE, Listener, ListenNotifier
from laneway.drivers.postgresql import PROBE, Pooled

from .connection import AsyncBoundedConnection


class PsycopgListener:
    def __init__(self, connection: AsyncBoundedConnection, channel: str) -> None:
        self._connection = connection
        self._channel = channel

    @classmethod
    async def open(cls, url: str, channel: str) -> "PsycopgListener":
        connection = await AsyncBoundedConnection.connect(
            url, autocommit=True, prepare_threshold=None
        )
        connection.patience = PATIENCE
        try:
            cursor = await connection.execute(PROBE)
            ((process, _),) = await cursor.fetchall()
            if process != connection.info.backend_pid:
                raise Pooled
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        except BaseException:
            await connection.close()
            raise
        return cls(connection, channel)

    async def receive(self, seconds: float) -> list[str]:
        self._connection.patience = None
        notifies = self._connection.notifies(timeout=seconds, stop_after=1)
        heard = [notify.payload async for notify in notifies]
        self._connection.patience = PATIENCE
        return heard

    async def notify(self, payload: str) -> None:
        cursor = AsyncRawCursor(self._connection)
        await cursor.execute("SELECT pg_notify($1, $2)", (self._channel, payload))

    async def probe(self) -> None:
        await self._connection.execute("SELECT 1")

    async def close(self) -> None:
        await self._connection.close()


def psycopg_notifier(url: str, channel: str, wanted: frozenset[str]) -> ListenNotifier:
    async def connect() -> Listener:
        return await PsycopgListener.open(url, channel)

    return ListenNotifier(connect, wanted)
