"""A handler that blocks the event loop defeats timeouts: the log names it, and where it stands."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway import Queue, Worker


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield queue


async def blocks(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251


async def waits(seconds: float) -> None:
    await asyncio.sleep(seconds)


def in_thread(seconds: float) -> None:
    time.sleep(seconds)


def test_a_blocking_handler_is_named(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(queue)
    for function in (waits, in_thread):
        worker.handler(function)
        queue.publish(3.0, kind=function.__name__)
    worker.run(until_empty=True)
    assert not [line for line in caplog.messages if "blocked the event loop" in line]
    worker.handler(timeout=0.5)(blocks)
    id = queue.publish(3.0, kind="blocks").id
    worker.run(until_empty=True)
    (line,) = [line for line in caplog.messages if "blocked the event loop" in line]
    assert line.startswith(f"{__name__}.blocks (message {id}) has blocked the event loop for more")
    assert "time.sleep(seconds)" in line and "asyncio.to_thread()" in line
