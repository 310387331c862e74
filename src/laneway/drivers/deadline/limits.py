"""The seconds that are waited for an answer, and what a connection shows of a wire that moves."""

import socket
from contextlib import suppress
from typing import Any

from laneway.plan import Statement

CALL_TIMEOUT = 20.0
"""Well above the waits for locks that the server itself ends, and below the default lease."""

CONNECT_TIMEOUT = 10.0
PING_TIMEOUT = 5.0
"""An idle connection that does not answer so soon is replaced by a new one."""

_LONG = 30  # times the usual, for what may take long: a migration, for one

# Seconds, seconds and probes: the kernel finds a host that is gone during the longest call too.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_COUNTERS = slice(120, 136)  # of Linux's tcp_info: bytes that were acknowledged, and received


class NoAnswer(OSError):
    """Nothing came within the time for a call. The connection is closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"nothing came back within {seconds:g} seconds")


def patience(statement: Statement, seconds: float | None) -> float | None:
    """How long this statement may take, if a usual one may take ``seconds``."""
    return seconds * _LONG if seconds is not None and statement.long else seconds


def keep_alive(sock: Any) -> None:
    """Of a TCP connection; ``sock`` is its socket or the number of it."""
    if isinstance(sock, int):
        with suppress(OSError), socket.socket(fileno=socket.dup(sock)) as copy:
            keep_alive(copy)
        return
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with suppress(OSError):  # closed meanwhile
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):  # not every system has them
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def moved(sock: Any) -> bytes | None:
    """Something that changes when data goes over the wire; None where that cannot be said."""
    if not hasattr(socket, "TCP_INFO") or sock is None or sock.family == socket.AF_UNIX:
        return None
    with suppress(OSError):
        counters: bytes = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)[_COUNTERS]
        return counters or None
    return None
