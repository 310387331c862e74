"""Time in a worker's own queue is waiting, not running: the history says when the handler began."""

import asyncio

from laneway import AsyncQueue, NewMessage, Worker
from tests.client.worlds import run_async
from tests.worker.databases import database_url

__all__ = ["database_url"]

COUNT = 300


@run_async
async def test_the_history_says_when_handlers_began(database_url: str) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        worker = Worker(queue, concurrency=1)

        @worker.handler("sleep")
        async def handle(payload: int) -> None:
            await asyncio.sleep(0.002)

        @worker.handler("fail", ack="reject")
        async def fail(payload: int) -> None:
            await asyncio.sleep(0.002)
            raise ValueError(payload)

        published = await queue.publish_many(
            [
                NewMessage(n, kind=kind, channel=kind)
                for kind in ("sleep", "fail")
                for n in range(COUNT)
            ]
        )
        await worker.serve(until_empty=True)
        runs: dict[str, list[float]] = {"completed": [], "failed": []}
        held = {"completed": 0.0, "failed": 0.0}
        for one in published:
            entry = (await queue.history(one.id or 0))[-1]
            assert entry.claimed_at is not None
            if entry.started_at is not None:
                assert entry.claimed_at < entry.started_at <= entry.ended_at
                runs[entry.outcome].append((entry.ended_at - entry.started_at).total_seconds())
                held[entry.outcome] += (entry.ended_at - entry.claimed_at).total_seconds()
        for outcome, seconds in runs.items():
            assert len(seconds) > COUNT / 20, "messages waited in this worker"
            assert held[outcome] - sum(seconds) >= 0.005 * len(seconds)


@run_async
async def test_what_did_not_wait_has_no_time_of_its_own(database_url: str) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        published = await queue.publish({"n": 1})
        await (await queue.claim())[0].complete()
        (entry,) = await queue.history(published.id or 0)
        assert entry.started_at is None and entry.claimed_at is not None
