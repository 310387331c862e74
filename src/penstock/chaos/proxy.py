"""Between clients and the server: lets bytes through, and cuts connections at the worst moment."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

Cut = Literal["sent", "swallowed"]

_CHUNK = 65_536


class Door:
    """One process's way to the server, which listens at ``target()``. ``cut``: what becomes of the
    next statement and its connection: sent, and its answer never comes, or not even sent."""

    def __init__(self, target: Callable[[], int]) -> None:
        self._target = target
        self.cut: Cut | None = None

    async def enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", self._target())
        except OSError:
            writer.close()
            return
        back = asyncio.ensure_future(_copy(inner, writer))
        # Cancelled at the end of the run: asyncio's streams would complain if it got any further.
        with suppress(OSError, asyncio.CancelledError):
            await self._forward(reader, outer)
        back.cancel()
        for end in (writer, outer):
            end.close()

    async def _forward(self, reader: asyncio.StreamReader, outer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            cut, self.cut = self.cut, None
            if cut != "swallowed":
                outer.write(data)
                await outer.drain()
            if cut is not None:
                return


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


class Proxy:
    """All doors, in a thread of their own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._doors: dict[str, Door] = {}
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def open(self, name: str) -> int:
        """A port that leads to the server, for this process only."""
        door = self._doors[name] = Door(lambda: self._target)
        return int(self._run(self._listen(door)))

    def lead_to(self, target: int) -> None:
        """New connections go there."""
        self._target = target

    def cut(self, name: str, how: Cut) -> None:
        self._doors[name].cut = how

    def close(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self, door: Door) -> int:
        server = await asyncio.start_server(door.enter, "127.0.0.1", 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)
