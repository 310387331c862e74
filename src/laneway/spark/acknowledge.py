"""Spark's first rows for a task, without a wait of 40 ms.

Java sends a task in two pieces: what to do, and its rows. Its sockets hold the second back until
the first is acknowledged (Nagle's algorithm), and Linux delays that for up to 40 ms in the hope of
an answer that it could go with. Python has none before it has rows.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress

_OPEN = "/proc/self/fd"


def acknowledge() -> None:
    """Acknowledges now what has come through this process's sockets. Spark does not say which one
    is Java's. Only Linux can be asked for it; elsewhere nothing happens.

    With a default timeout Python makes a socket that it is given non-blocking, and so the one that
    Spark reads from."""
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None or socket.getdefaulttimeout() is not None:
        return
    for number in _sockets():
        with suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
            one.setsockopt(socket.IPPROTO_TCP, option, 1)


def _sockets() -> Iterator[int]:
    """One may be closed in the meantime, by another thread or because it was opened to list all.
    None where /proc is missing."""
    names = list[str]()
    with suppress(OSError):
        names = os.listdir(_OPEN)
    for name in names:
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield int(name)
