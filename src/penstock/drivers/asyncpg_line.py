"""An asyncpg connection that listens."""

import asyncio
from typing import Any

import asyncpg

from .listening import Line, ListeningBell


class AsyncpgLine:
    def __init__(self, connection: Any, channel: str) -> None:
        self._connection = connection
        self._channel = channel
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    @classmethod
    async def open(cls, url: str, channel: str) -> "AsyncpgLine":
        connection = await asyncpg.connect(url, statement_cache_size=0)
        line = cls(connection, channel)
        try:
            await connection.add_listener(channel, line._note)
        except BaseException:
            await connection.close()
            raise
        return line

    def _note(self, connection: Any, process: int, channel: str, payload: str) -> None:
        self._heard.put_nowait(payload)

    async def hear(self, seconds: float) -> list[str]:
        try:
            async with asyncio.timeout(seconds):
                heard = [await self._heard.get()]
        except TimeoutError:
            return []
        while not self._heard.empty():
            heard.append(self._heard.get_nowait())
        return heard

    async def ring(self, payload: str) -> None:
        await self._connection.execute("SELECT pg_notify($1, $2)", self._channel, payload)

    async def probe(self) -> None:
        await self._connection.execute("SELECT 1")

    async def close(self) -> None:
        self._connection.terminate()


def asyncpg_bell(url: str, channel: str, wanted: frozenset[str]) -> ListeningBell:
    async def connect() -> Line:
        return await AsyncpgLine.open(url, channel)

    return ListeningBell(connect, wanted)
