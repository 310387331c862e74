"""What has come is acknowledged at once, so that a sender that waits for it goes on."""

import socket
from collections.abc import Iterator
from statistics import median
from time import perf_counter

import pytest

from laneway.spark.acknowledge import acknowledge


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection like that of Java and a Python process of Spark."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        java = socket.create_connection(server.getsockname())
        python, _ = server.accept()
        with java, python:
            yield java, python


def exchanged(java: socket.socket, python: socket.socket, *, at_once: bool) -> float:
    """Seconds from a task's first piece to its second one. The answer afterwards makes the kernel
    expect another one."""
    java.sendall(b"task")
    assert python.recv(4) == b"task"
    began = perf_counter()
    java.sendall(b"rows")
    if at_once:
        acknowledge()
    assert python.recv(4) == b"rows"
    took = perf_counter() - began
    python.sendall(b"done")
    assert java.recv(4) == b"done"
    return took


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux delays so, and can")
def test_what_has_come_is_acknowledged_at_once(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """Against the same connection without it. Without, Linux waits for 40 ms."""
    for _ in range(20):  # a new connection is acknowledged at once for a while
        exchanged(*pair, at_once=False)
    waited = [exchanged(*pair, at_once=False) for _ in range(9)]
    at_once = [exchanged(*pair, at_once=True) for _ in range(9)]
    assert median(at_once) < median(waited) / 3


def test_whatever_is_open_stays_as_it_is(pair: tuple[socket.socket, socket.socket]) -> None:
    """Sockets of other kinds, and what listens."""
    left, right = socket.socketpair()
    with left, right, socket.create_server(("127.0.0.1", 0)) as server:
        acknowledge()
        left.sendall(b"unix")
        assert right.recv(4) == b"unix"
        with socket.create_connection(server.getsockname()) as client, server.accept()[0] as other:
            client.sendall(b"tcp")
            assert other.recv(3) == b"tcp"
    exchanged(*pair, at_once=True)
