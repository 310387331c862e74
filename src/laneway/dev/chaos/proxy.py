"""A proxy between clients and the server that cuts connections at the worst moment."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

Cut = Literal["sent", "swallowed", "sent, then silent", "silent"]

_CHUNK = 65_536


class ProxyPort:
    """The port through which one process reaches the server at ``target()``.

    ``cut`` hits the connection of the next statement, or of the one after ``skipped`` others: it is
    closed after the statement was "sent", or before that ("swallowed"); or it stays open and
    nothing goes through any more in either direction, from behind that statement on ("sent, then
    silent") or before it ("silent").
    """

    def __init__(self, target: Callable[[], int]) -> None:
        self._target = target
        self.cut: Cut | None = None
        self.skipped = 0
        self._silent: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", self._target())
        except OSError:
            writer.close()
            return
        self._open.add(writer)
        back = asyncio.ensure_future(self._copy_back(inner, writer))
        # Cancelled at the end of the run: asyncio's streams would complain if it got any further.
        with suppress(OSError, asyncio.CancelledError):
            await self._forward(reader, outer, writer)
        back.cancel()
        self._open.discard(writer)
        self._silent.discard(writer)
        for end in (writer, outer):
            end.close()

    def silence(self) -> None:
        """All connections that are open now, for good."""
        self._silent |= self._open

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        outer: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
    ) -> None:
        while data := await reader.read(_CHUNK):
            if client in self._silent:
                continue
            cut = self._due()
            if cut in ("sent, then silent", "silent"):
                self._silent.add(client)
            if cut not in ("swallowed", "silent"):
                outer.write(data)
                await outer.drain()
            if cut in ("sent", "swallowed"):
                return

    async def _copy_back(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                if client in self._silent:
                    continue
                client.write(data)
                await client.drain()
        if client not in self._silent:
            client.close()

    def _due(self) -> Cut | None:
        if self.cut is None:
            return None
        if self.skipped:
            self.skipped -= 1
            return None
        cut, self.cut = self.cut, None
        return cut


class Proxy:
    """The proxy's ports, in a thread of their own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._ports: dict[str, ProxyPort] = {}
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def open(self, name: str) -> int:
        """Opens a port that leads to the server, for one process."""
        port = self._ports[name] = ProxyPort(lambda: self._target)
        return int(self._run(self._listen(port)))

    def redirect(self, target: int) -> None:
        """Sends new connections to another port."""
        self._target = target

    def cut(self, name: str, how: Cut | None, skipped: int = 0) -> None:
        port = self._ports[name]
        port.cut, port.skipped = how, skipped

    def silence(self, name: str) -> None:
        """No connection that this process has open now hears anything any more."""
        self._loop.call_soon_threadsafe(self._ports[name].silence)

    def close(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self, port: ProxyPort) -> int:
        server = await asyncio.start_server(port.handle, "127.0.0.1", 0)
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
