"""What handlers say about their progress goes along with the heartbeat."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

from laneway import AsyncMessage, AsyncQueue, Message, Worker
from laneway.model import Progress
from tests.client.worlds import run_async
from tests.worker import in_process
from tests.worker.databases import database_url

__all__ = ["database_url"]


async def said(queue: AsyncQueue, id: int | None, wanted: Callable[[Progress], bool]) -> Progress:
    """Waits until the database has it."""
    async with asyncio.timeout(60):
        while True:
            info = await queue.message(id or 0)
            if info is not None and info.progress is not None and wanted(info.progress):
                return info.progress
            await asyncio.sleep(0.05)


@run_async
async def test_every_kind_of_handler_tells_its_progress(database_url: str) -> None:
    async with AsyncQueue(database_url, lease=timedelta(seconds=2)) as queue:
        await queue.install()
        worker = Worker(queue, processes=1)
        done, released = asyncio.Event(), threading.Event()

        @worker.handler("async")
        async def in_loop(number: int, message: AsyncMessage) -> None:
            for _ in range(1000):
                message.progress(0.1)
            message.progress(0.4, "page 3 of 7")
            await done.wait()

        @worker.handler("thread")
        def in_thread(number: int, message: Message) -> None:
            message.progress(None, "half ☂")
            released.wait(60)

        worker.handler("process", run="process")(in_process.tells_progress)
        running = asyncio.create_task(worker.serve(until_empty=True))
        try:
            first = await queue.publish(1, kind="async")
            second = await queue.publish(1, kind="thread")
            third = await queue.publish(1, kind="process")
            found = await said(queue, first.id, lambda p: p.share == 0.4)
            assert found.note == "page 3 of 7"
            assert (await said(queue, second.id, lambda p: True)).note == "half ☂"
            assert (await said(queue, third.id, lambda p: p.share == 1.0)).note == "nearly"
            await queue.cancel([third.id or 0], running=True)
        finally:
            done.set()
            released.set()
            await running
        assert [entry.outcome for entry in await queue.history(first.id or 0)] == ["completed"]


def test_it_needs_no_statement_of_its_own() -> None:
    """One hold with notes is one statement on PostgreSQL, as one without."""
    from laneway.engines.postgresql import PostgresqlEngine
    from laneway.model import ProgressNote

    engine = PostgresqlEngine("laneway")
    plan = engine.leases.hold([(1, 1)], timedelta(seconds=1), [ProgressNote(1, 1, 0.5, None)])
    next(plan)
    try:
        plan.send([])
    except StopIteration as end:
        assert end.value == ["extended"]
    else:
        raise AssertionError("a second statement")
