"""A psycopg 3 connection that listens."""

from psycopg import AsyncConnection, AsyncRawCursor, sql
from psycopg.rows import TupleRow

from .listening import Line, ListeningBell


class PsycopgLine:
    def __init__(self, connection: AsyncConnection[TupleRow], channel: str) -> None:
        self._connection = connection
        self._channel = channel

    @classmethod
    async def open(cls, url: str, channel: str) -> "PsycopgLine":
        connection = await AsyncConnection.connect(url, autocommit=True, prepare_threshold=None)
        try:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        except BaseException:
            await connection.close()
            raise
        return cls(connection, channel)

    async def hear(self, seconds: float) -> list[str]:
        notifies = self._connection.notifies(timeout=seconds, stop_after=1)
        return [notify.payload async for notify in notifies]

    async def ring(self, payload: str) -> None:
        cursor = AsyncRawCursor(self._connection)
        await cursor.execute("SELECT pg_notify($1, $2)", (self._channel, payload))

    async def probe(self) -> None:
        await self._connection.execute("SELECT 1")

    async def close(self) -> None:
        await self._connection.close()


def psycopg_bell(url: str, channel: str, wanted: frozenset[str]) -> ListeningBell:
    async def connect() -> Line:
        return await PsycopgLine.open(url, channel)

    return ListeningBell(connect, wanted)
