"""The dashboard as a server of its own, with limits on connections, headers and time."""

import asyncio
from typing import Any

from laneway.errors import InvalidOption
from laneway.extras import needs

from .dashboard import AnyDashboard

with needs("laneway dashboard", "uvicorn and Starlette", "dashboard"):
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from .asgi import DashboardApp

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_CONNECTIONS = 500
HEAD_SECONDS = 10.0
"""In which a request's headers have to arrive."""
READ_SECONDS = 10.0
"""In which somebody who is sent an answer has to read READ bytes of it."""
READ = 4096
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class TimedProtocol(H11Protocol):
    """uvicorn's, and what it has no setting for: a time for the headers, an end for those who do
    not read their answers, and a number of connections. That of h11 ends with headers of 16 KiB."""

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(_FULL)
            self._close()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """After whatever arrived: a request has begun, or its headers are awaited still."""
        super().handle_events()
        if self._head_timer and self.cycle is not None and not self.cycle.response_complete:
            self._head_timer.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # else the next request was there already
            self._wait_for_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._end_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._read_timer is not None:
            self._read_timer.cancel()

    def _wait_for_head(self) -> None:
        """Its end is also that of a body which nobody wants."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def _close(self) -> None:
        """What is written is sent before."""
        self.transport.close()
        self._end_unread()

    def _end_unread(self, before: int | None = None) -> None:
        """Sending waits for ever for somebody who does not read."""
        if self._read_timer is not None:
            self._read_timer.cancel()
        left = self.transport.get_write_buffer_size()
        if before is not None and before - left < READ:
            self.transport.abort()
        else:
            self._read_timer = self.loop.call_later(READ_SECONDS, self._end_unread, left)


def check_reach(host: str, *, said: bool) -> None:
    """An address that others reach needs that the user has ``said`` who is let in."""
    if host not in LOOPBACK and not said:
        raise InvalidOption(
            f"{host} can be reached by others: give --token, or --insecure if everybody may do "
            "everything"
        )


def config_of(dashboard: AnyDashboard, host: str, port: int, **more: Any) -> "uvicorn.Config":
    """Streams of hints do not end by themselves, so they are ended soon. Who is asking is decided
    by the connection: a header of the client's must not change it."""
    return uvicorn.Config(
        DashboardApp(dashboard),
        host=host,
        port=port,
        http=TimedProtocol,
        ws="none",
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        **more,
    )


def serve(dashboard: AnyDashboard, host: str, port: int) -> None:
    """Until Ctrl-C."""
    access = dashboard.access
    check_reach(host, said=bool(access.token or access.hook or access.insecure))
    config = config_of(dashboard, host, port)
    dashboard.begin()
    uvicorn.Server(config).run()
