"""Workers that handle different kinds of one queue: none takes what it cannot handle."""

import asyncio
import logging
from collections import Counter
from datetime import timedelta

import pytest

from laneway import NewMessage, Worker
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client

COUNT = 300


@run_async
async def test_two_workers_of_different_kinds_share_a_queue(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The first gives back the one message that it meets, and then leaves such messages alone. The
    second sees the first, and never takes one."""
    caplog.set_level(logging.INFO, "laneway.worker")
    async with client(place) as queue, client(place) as other:
        seen: Counter[str] = Counter()
        done = asyncio.Event()
        workers = []
        for kind, own in (("red", queue), ("blue", other)):
            worker = Worker(own, concurrency=20)

            @worker.handler(kind)
            async def handle(payload: str) -> None:
                seen[payload] += 1
                if seen.total() == 2 * COUNT + 1:
                    done.set()

            workers.append(worker)
        red, blue = workers
        serving = [asyncio.create_task(red.serve())]
        met = await queue.publish("met", kind="blue")
        while not (await queue.history(met.id or 0) and await queue.workers()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        _, start = await queue.history_since(limit=5000)
        serving.append(asyncio.create_task(blue.serve()))
        await queue.publish_many(
            NewMessage(f"{kind} {n}", kind=kind, channel=f"c{n % 7}")
            for n in range(COUNT)
            for kind in ("red", "blue")
        )
        await asyncio.wait_for(done.wait(), 60)
        for worker in workers:
            worker.stop()
        await asyncio.gather(*serving)
        assert set(seen.values()) == {1}
        entries, _ = await queue.history_since(start, limit=5000)
        told = [entry.outcome for entry in entries if entry.message_id != met.id]
    assert Counter(told) == {"completed": 2 * COUNT}
    said = [line for line in caplog.messages if line.startswith("claiming only")]
    assert [line.partition("): ")[2] for line in said] == [
        f"message {met.id} has the kind 'blue'",
        "another worker of the queue handles other kinds",
    ]


@run_async
async def test_a_kind_that_nobody_handles_waits(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, max_runtime=timedelta(seconds=1))

        @worker.handler("known")
        async def known(payload: int) -> None: ...

        published = await queue.publish(1, kind="unknown")
        await queue.publish(1, kind="known")
        await worker.serve()
        assert published.id is not None
        outcomes = {entry.outcome for entry in await queue.history(published.id)}
        assert outcomes <= {"given_back"}
        message = await queue.message(published.id)
        assert message is not None and message.state == "waiting"
