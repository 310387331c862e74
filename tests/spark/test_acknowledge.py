"""What has come is acknowledged at once, so that a sender that waits for it goes on."""

import os
import socket
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

import pyarrow
import pytest

from laneway.spark.acknowledge import acknowledge
from laneway.spark.options import parse
from laneway.spark.publish.values import all_shaped

Receive = Callable[[socket.socket], None]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection like that of Java and a Python process of Spark."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        java = socket.create_connection(server.getsockname())
        python, _ = server.accept()
        with java, python:
            yield java, python


def late(python: socket.socket) -> None:
    assert python.recv(4) == b"rows"


def at_once(python: socket.socket) -> None:
    acknowledge()
    late(python)


def as_a_task_does(python: socket.socket) -> None:
    def batches() -> Iterator[pyarrow.RecordBatch]:
        late(python)
        yield pyarrow.RecordBatch.from_pydict({"payload": [b"x"]})

    assert len(list(all_shaped(batches(), parse({"url": "postgresql://h/d"}, "write")))) == 1


def exchanged(java: socket.socket, python: socket.socket, receive: Receive) -> float:
    """Seconds from a task's first piece to its second one. The answer afterwards makes the kernel
    expect another one."""
    java.sendall(b"task")
    assert python.recv(4) == b"task"
    began = perf_counter()
    java.sendall(b"rows")
    receive(python)
    took = perf_counter() - began
    python.sendall(b"done")
    assert java.recv(4) == b"done"
    return took


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux delays so, and can")
@pytest.mark.parametrize("receive", [at_once, as_a_task_does])
def test_what_has_come_is_acknowledged_at_once(
    pair: tuple[socket.socket, socket.socket], receive: Receive
) -> None:
    """Against the same connection without it. Without, Linux waits for 40 ms."""
    for _ in range(20):  # a new connection is acknowledged at once for a while
        exchanged(*pair, late)
    waited = [exchanged(*pair, late) for _ in range(9)]
    assert median(exchanged(*pair, receive) for _ in range(9)) < median(waited) / 3


def test_a_socket_that_blocks_still_does(pair: tuple[socket.socket, socket.socket]) -> None:
    """Whatever somebody's code in the same process has set."""
    socket.setdefaulttimeout(1)
    try:
        acknowledge()
    finally:
        socket.setdefaulttimeout(None)
    assert all(os.get_blocking(one.fileno()) for one in pair)


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
    exchanged(*pair, at_once)
