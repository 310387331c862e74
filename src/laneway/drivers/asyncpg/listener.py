"""An asyncpg connection that listens."""

import asyncio
from typing import Any

import asyncpg

from laneway.drivers.listener import Listener, ListenNotifier
from laneway.drivers.session import Pooled

from .probe import probe


class AsyncpgListener:
    def __init__(self, connection: Any, channel: str) -> None:
        self._connection = connection
        self._channel = channel
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    @classmethod
    async def open(cls, url: str, channel: str) -> "AsyncpgListener":
        connection = await asyncpg.connect(url, statement_cache_size=0)
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
