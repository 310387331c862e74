"""/livez, /readyz and /metrics on a loopback port, for probes and scrapers on this host."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

_PATIENCE = 5.0  # seconds for a request
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

Problems = Callable[[], Awaitable[list[str]]]
Scrape = Callable[[], tuple[bytes, str]]


def scraper(watchers: Iterable[object]) -> Scrape | None:
    """What /metrics answers: the registry of the first watcher that has one."""
    registry = next((w.registry for w in watchers if hasattr(w, "registry")), None)
    if registry is None:
        return None

    def scrape() -> tuple[bytes, str]:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(registry), CONTENT_TYPE_LATEST

    return scrape


class Health:
    """``ready`` says what keeps the worker from working. That /livez answers at all shows that the
    loop turns; it never asks the database, whose failure no restart of the worker mends."""

    def __init__(self, ready: Problems, scrape: Scrape | None) -> None:
        self._ready = ready
        self._scrape = scrape
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(TimeoutError, ConnectionError, ValueError):
            async with asyncio.timeout(_PATIENCE):
                method, path, _ = (await reader.readline()).decode("ascii").split()
                while (await reader.readline()).strip():
                    pass
                code, kind, body = await self._answer(method, path.partition("?")[0])
                writer.write(_response(code, kind, body))
                await writer.drain()
        writer.close()

    async def _answer(self, method: str, path: str) -> tuple[int, str, bytes]:
        if method not in ("GET", "HEAD"):
            return 405, "text/plain", b""
        if path == "/livez":
            return _report([])
        if path == "/readyz":
            return _report(await self._ready())
        if path == "/metrics" and self._scrape is not None:
            body, kind = self._scrape()
            return 200, kind, body
        return 404, "text/plain", b"/livez, /readyz, /metrics\n"


def _report(problems: list[str]) -> tuple[int, str, bytes]:
    body = json.dumps({"ok": not problems, "problems": problems}).encode() + b"\n"
    return (503 if problems else 200), "application/json", body


def _response(code: int, kind: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
