"""/livez, /readyz and /metrics over HTTP, for probes and scrapers.

They listen on the loopback unless the user names another address: whoever reaches it may read
them.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from laneway.client.shared.checks import check_number
from laneway.errors import InvalidOption, shown

_log = logging.getLogger("laneway.worker")

LOOPBACK = "127.0.0.1"
# Seconds: for sending a request, and until /readyz answers. The latter is below the timeout of any
# prober that was configured with care.
_REQUEST_TIMEOUT = 5.0
_READY_TIMEOUT = 2.0
_MAX_CONNECTIONS = 100
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

Problems = Callable[[], Awaitable[list[str]]]
Scrape = Callable[[], Awaitable[tuple[bytes, str]]]


def check_address(host: object, port: object) -> tuple[str, int]:
    """Refused before anything starts; port 0 is any free one."""
    if not isinstance(host, str) or not host.strip() or not host.isprintable():
        raise InvalidOption(
            f"health_host must be an address of this machine, not {shown(host)}: "
            f"use {LOOPBACK!r}, or '0.0.0.0' for every network"
        )
    return host.strip(), check_number("health_port", port, 0, 65535)


def health_address(host: object, port: object) -> tuple[str, int] | None:
    """Where a worker's health listens; without a port nowhere."""
    checked = check_address(host, 0 if port is None else port)
    if port is None and checked[0] != LOOPBACK:
        raise InvalidOption("health_host says where the health listens: give a health_port too")
    return None if port is None else checked


def scraper(observers: Iterable[object]) -> Scrape | None:
    """What /metrics answers: the registry of the first observer that has one."""
    registry = next((w.registry for w in observers if hasattr(w, "registry")), None)
    if registry is None:
        return None

    async def scrape() -> tuple[bytes, str]:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(registry), CONTENT_TYPE_LATEST

    return scrape


class PartlyReady(list[str]):
    """Problems with some of the worker's databases: it serves the others."""


class Health:
    """``ready`` returns what keeps the worker from working. /livez only shows that the event loop
    runs; it never asks the database, because restarting the worker would not fix that."""

    def __init__(self, scrape: Scrape | None) -> None:
        self.ready: Problems = _starting
        self._scrape = scrape
        self._server: asyncio.Server | None = None
        self._probe: asyncio.Task[list[str]] | None = None
        self._connections = 0
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        try:
            self._server = await asyncio.start_server(self._serve, host, port)
        except OSError as error:
            raise InvalidOption(
                f"cannot listen on {host} port {port}: {error.strerror or error}: "
                "choose another health_host or health_port"
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]
        _log.info(
            "health and metrics on http://%s:%d", f"[{host}]" if ":" in host else host, self.port
        )

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._probe is not None:
            self._probe.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= _MAX_CONNECTIONS:
                with suppress(ConnectionError, ValueError):
                    await self._respond(reader, writer)
            writer.close()
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                await writer.wait_closed()
        except (TimeoutError, ConnectionError):
            # It does not send, or does not read: closing would wait for that.
            writer.transport.abort()
        finally:
            self._connections -= 1
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_REQUEST_TIMEOUT):
            method, path, _ = (await reader.readline()).decode("ascii").split()
            while (await reader.readline()).strip():
                pass
        code, kind, body = await self._answer(method, path.partition("?")[0])
        async with asyncio.timeout(_REQUEST_TIMEOUT):
            writer.write(_response(code, kind, body, method == "HEAD"))
            await writer.drain()

    async def _answer(self, method: str, path: str) -> tuple[int, str, bytes]:
        if method not in ("GET", "HEAD"):
            return 405, "text/plain", b""
        if path == "/livez":
            return _report([])
        if path == "/readyz":
            return _report(await self._problems())
        if path == "/metrics" and self._scrape is not None:
            body, kind = await self._scrape()
            return 200, kind, body
        return 404, "text/plain", b"/livez, /readyz, /metrics\n"

    async def _problems(self) -> list[str]:
        """Answers in time though the database may be silent: the question is not cancelled (that
        would ask the same server), and a second one is not asked meanwhile."""
        probe = self._probe
        if probe is None:
            probe = self._probe = asyncio.create_task(_asked(self.ready))
        done, _ = await asyncio.wait([probe], timeout=_READY_TIMEOUT)
        if not done:
            return [f"the database does not answer: nothing within {_READY_TIMEOUT:.0f} s"]
        if self._probe is probe:
            self._probe = None
        return probe.result()


async def _starting() -> list[str]:
    return ["it is starting"]


async def _asked(ready: Problems) -> list[str]:
    return await ready()


def _report(problems: list[str]) -> tuple[int, str, bytes]:
    ok = not problems or isinstance(problems, PartlyReady)
    body = json.dumps({"ok": ok, "problems": problems}).encode() + b"\n"
    return (200 if ok else 503), "application/json", body


def _response(code: int, kind: str, body: bytes, head_only: bool) -> bytes:
    head = (
        f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else body)
