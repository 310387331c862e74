"""Messages claimed ahead go to other workers while long handlers block the queue before them; and
handlers do not wait for a claim ahead."""

import asyncio
from typing import Any

import pytest

from laneway import AsyncQueue, Worker
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, until

QUICK = 2000
LONG = 4


async def _fast_then_stuck(queue: AsyncQueue, worker: Worker, stuck: list[int]) -> asyncio.Event:
    """Handlers that are over at once, until as many as can run at a time wait for the event."""
    released = asyncio.Event()

    @worker.default_handler
    async def handle(payload: int) -> None:
        if QUICK <= payload < QUICK + LONG:
            stuck.append(payload)
            await released.wait()

    await queue.publish_many(range(QUICK + LONG + 400))
    return released


async def _until_only_the_stuck_are_leased(queue: AsyncQueue) -> None:
    async with asyncio.timeout(20):
        while (await queue.stats())[0].leased > LONG:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@run_async
async def test_an_idle_worker_gets_what_another_has_claimed_ahead(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=LONG)
        stuck: list[int] = []
        released = await _fast_then_stuck(queue, worker, stuck)
        serving = asyncio.create_task(worker.serve())
        await until(lambda: len(stuck) == LONG)
        got: list[int] = []
        other = Worker(queue, concurrency=LONG)

        @other.default_handler
        async def take(payload: int) -> None:
            got.append(payload)

        beside = asyncio.create_task(other.serve())
        await until(lambda: len(got) == 400)
        await _until_only_the_stuck_are_leased(queue)
        released.set()
        worker.stop()
        other.stop()
        await asyncio.gather(serving, beside)


@run_async
async def test_what_was_given_back_from_the_queue_is_not_counted(place: Place) -> None:
    """Neither as an attempt, nor among those after which the worker stops."""
    async with client(place) as queue:
        worker = Worker(queue, concurrency=LONG, max_messages=QUICK + LONG + 400)
        stuck: list[int] = []
        released = await _fast_then_stuck(queue, worker, stuck)
        serving = asyncio.create_task(worker.serve())
        await until(lambda: len(stuck) == LONG)
        await _until_only_the_stuck_are_leased(queue)
        leased = await queue.messages(state="leased")
        released.set()
        await asyncio.wait_for(serving, 20)
        assert not await queue.stats()
        first_queued = await queue.history(max(message.id for message in leased) + 1)
        assert [entry.outcome for entry in first_queued] == ["given_back", "completed"]
        assert first_queued[-1].attempt == 1


@run_async
async def test_handlers_start_before_the_next_claim_is_made(place: Place) -> None:
    async with client(place) as queue:
        await queue.publish(b"")
        worker = Worker(queue, concurrency=5)
        steps: list[str] = []
        verbs: Any = type(queue.database.engine.claims)
        claim = verbs.claim

        def noted(*arguments: Any) -> Any:
            steps.append("claim")
            return claim(*arguments)

        @worker.default_handler
        async def handle(payload: object) -> None:
            steps.append("handler")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(verbs, "claim", noted)
            await worker.serve(until_empty=True)
        assert steps[:3] == ["claim", "handler", "claim"]
