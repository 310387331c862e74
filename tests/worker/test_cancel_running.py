"""Cancelling what runs: every kind of handler is told, and the message ends as cancelled."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from laneway import AsyncMessage, AsyncQueue, Constant, Defer, Message, Worker
from laneway.worker.run import background
from tests.client.worlds import run_async
from tests.worker import in_process
from tests.worker.databases import database_url
from tests.worker.test_worker import outcomes, until

__all__ = ["database_url"]


@pytest.fixture(autouse=True)
def seen_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "SEEN_EVERY", timedelta(seconds=0.1))


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(worker.serve())
    try:
        yield task
    finally:
        worker.stop()
        await asyncio.wait_for(task, 30)


async def ended(queue: AsyncQueue, id: int) -> list[str]:
    async with asyncio.timeout(20):
        while await queue.message(id) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return await outcomes(queue, id)


async def cancel_once_started(
    queue: AsyncQueue, id: int | None, started: Callable[[], bool]
) -> list[str]:
    assert id is not None
    await until(started)
    (result,) = await queue.cancel([id], running=True)
    assert result.status == "requested"
    return await ended(queue, id)


@run_async
async def test_an_async_handler_is_cancelled(database_url: str) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        worker = Worker(queue, grace=0.1)
        steps: list[str] = []

        @worker.default_handler(retry=Constant(every=0))
        async def handle(payload: int, message: AsyncMessage) -> None:
            steps.append("started")
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                steps.append(f"cancelled {message.cancel_requested}")
                raise

        published = await queue.publish(1, key="only once")
        async with running(worker):
            assert await cancel_once_started(queue, published.id, lambda: bool(steps)) == [
                "cancelled"
            ]
            (entry,) = await queue.history(published.id or 0)
            assert entry.terminal and entry.fence is not None and entry.worker == queue.worker
            assert (await queue.publish(2, key="only once")).id != published.id, "its key is free"
        assert steps[:2] == ["started", "cancelled True"]


@run_async
async def test_a_handler_in_a_thread_sees_it(database_url: str) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        worker = Worker(queue)
        started = threading.Event()

        @worker.handler("raise", retry=Constant(every=0))
        def handle(payload: int, message: Message) -> None:
            started.set()
            while not message.cancel_requested:
                time.sleep(0.01)
            raise InterruptedError("told to stop")

        @worker.handler("return")
        def finish(payload: int, message: Message) -> None:
            started.set()
            while not message.cancel_requested:
                time.sleep(0.01)

        async with running(worker):
            published = await queue.publish(1, kind="raise")
            assert await cancel_once_started(queue, published.id, started.is_set) == ["cancelled"]
            started.clear()
            published = await queue.publish(1, kind="return")
            assert await cancel_once_started(queue, published.id, started.is_set) == ["completed"]


@run_async
async def test_a_handlers_process_is_ended(database_url: str, tmp_path: Path) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        worker = Worker(queue)
        worker.handler("process", run="process")(in_process.sleep_long)
        mark = tmp_path / "started"
        published = await queue.publish(str(mark), kind="process")
        async with running(worker):
            assert await cancel_once_started(queue, published.id, mark.exists) == ["cancelled"]


@run_async
async def test_what_waits_in_the_worker_is_not_even_started(database_url: str) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        worker = Worker(queue, concurrency=1)
        begun: list[int] = []
        release = asyncio.Event()

        @worker.default_handler
        async def handle(payload: int) -> Defer | None:
            begun.append(payload)
            if payload == 0:
                await release.wait()
            return None

        first = await queue.publish(0)
        async with running(worker):
            await until(lambda: begun == [0])
            other = await queue.publish(1)
            (result,) = await queue.cancel([other.id or 0], running=True)
            assert result.status in ("cancelled", "requested")
            assert await ended(queue, other.id or 0) == ["cancelled"]
            release.set()
            assert await ended(queue, first.id or 0) == ["completed"]
        assert begun == [0]


@run_async
async def test_a_deferral_after_the_request_is_not_retried(database_url: str) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        worker = Worker(queue)
        begun: list[int] = []

        @worker.default_handler
        async def handle(payload: int) -> Defer:
            begun.append(payload)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return Defer(0)
            return Defer(0)

        published = await queue.publish(1)
        async with running(worker):
            found = await cancel_once_started(queue, published.id, lambda: bool(begun))
            assert found == ["cancelled"] and begun == [1]
