"""Handlers that work on after their message was settled, or while it is being settled."""

import asyncio
import time
from datetime import timedelta

import psycopg
import pytest

from laneway import AsyncMessage, Constant, Message, Worker
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, outcomes

SECOND = timedelta(seconds=1)


@run_async
async def test_work_goes_on_after_the_completion(place: Place) -> None:
    """The lease is gone, as it should be: that is no loss."""
    async with client(place, lease=SECOND) as queue:
        worker = Worker(queue)
        ended = []

        @worker.handler("first", ack="first")
        async def first(payload: int) -> None:
            await asyncio.sleep(2.5)
            ended.append("first")

        @worker.handler("by hand")
        async def by_hand(payload: int, message: AsyncMessage) -> None:
            await message.complete()
            await asyncio.sleep(2.5)
            ended.append("by hand")

        ids = [(await queue.publish(1, kind=kind)).id for kind in ("first", "by hand")]
        await worker.serve(until_empty=True)
        assert sorted(ended) == ["by hand", "first"]
        for id in ids:
            assert await outcomes(queue, id) == ["completed"]


@run_async
async def test_a_long_transaction_does_not_keep_others_from_their_leases(place: Place) -> None:
    """It holds the row of its lease; who extends the others must not wait for that row."""
    async with client(place, lease=SECOND) as queue:
        worker = Worker(queue)

        @worker.handler("transaction")
        async def in_transaction(payload: int, message: AsyncMessage) -> None:
            async with await psycopg.AsyncConnection.connect(place.url) as mine:
                await message.complete(connection=mine)
                await asyncio.sleep(3.5)

        @worker.handler("thread")
        def in_thread(payload: int, message: Message) -> None:
            with psycopg.connect(place.url) as mine:
                message.complete(connection=mine)
                time.sleep(3.5)

        @worker.handler("slow")
        async def slow(payload: int) -> None:
            await asyncio.sleep(3.5)

        kinds = ["transaction", "thread", *["slow"] * 10]
        ids = [(await queue.publish(1, kind=kind)).id for kind in kinds]
        await worker.serve(until_empty=True)
        for id in ids:
            # Who extends may stand in line for the row at the moment of the commit.
            assert [o for o in await outcomes(queue, id) if o != "stale"] == ["completed"]


@run_async
async def test_a_transaction_that_rolls_back_leaves_the_message_to_the_policy(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.default_handler(ack="reject")
        async def handle(payload: int, message: AsyncMessage) -> None:
            async with await psycopg.AsyncConnection.connect(place.url) as mine:
                await message.complete(connection=mine)
                raise ValueError("no")

        published = await queue.publish(1)
        await worker.serve(until_empty=True)
        assert await outcomes(queue, published.id) == ["failed"]


@run_async
async def test_all_that_was_asked_for_is_handled_before_it_stops(place: Place) -> None:
    async with client(place) as queue:
        await queue.publish_many(range(600))
        worker = Worker(queue, concurrency=10, max_messages=500)
        done = []

        @worker.default_handler
        async def handle(payload: int) -> None:
            if payload >= 200:
                await asyncio.sleep(0.005)  # fast at first, so that many are claimed ahead
            done.append(payload)

        await worker.serve()
        assert len(done) == 500


async def _in_own_transaction(place: Place, message: AsyncMessage, ends: str) -> None:
    async with await psycopg.AsyncConnection.connect(place.url) as mine:
        await message.complete(connection=mine)
        if ends == "rolled back":
            raise ValueError("no")
    raise ValueError("no")


@pytest.mark.parametrize("ends", ["by hand", "committed", "rolled back"])
@pytest.mark.parametrize("is_async", [True, False])
@run_async
async def test_only_a_message_that_is_retried_is_said_to_be(
    place: Place, caplog: pytest.LogCaptureFixture, ends: str, is_async: bool
) -> None:
    """An error after the completion is logged, but nothing is retried, and ``on_error`` is for
    messages that failed."""
    async with client(place) as queue:
        worker, reported = Worker(queue), list[int]()

        @worker.on_error
        async def report(message: Message, error: BaseException) -> None:
            await asyncio.sleep(0)
            reported.append(message.attempt)

        if is_async:

            @worker.handler("work", retry=Constant(every=0, attempts=2))
            async def loop(payload: int, message: AsyncMessage) -> None:
                if ends == "by hand":
                    await message.complete()
                    raise ValueError("no")
                await _in_own_transaction(place, message, ends)

        else:

            @worker.handler("work", retry=Constant(every=0, attempts=2))
            def thread(payload: int, message: Message) -> None:
                if ends == "by hand":
                    message.complete()
                    raise ValueError("no")
                with psycopg.connect(place.url) as mine:
                    message.complete(connection=mine)
                    if ends == "rolled back":
                        raise ValueError("no")
                raise ValueError("no")

        published = await queue.publish(1, kind="work")
        with caplog.at_level("INFO", "laneway.worker"):
            await worker.serve(until_empty=True)
        said = [line for line in caplog.messages if "failed at attempt" in line]
        if ends == "rolled back":
            assert await outcomes(queue, published.id) == ["retried", "failed"]
            assert ["retrying in" in line for line in said] == [True, False]
            assert reported == [1, 2]
        else:
            ended = await outcomes(queue, published.id)
            assert ended[0] == "completed" and "retried" not in ended
            (line,) = said
            assert "failed at attempt 1 of 2, after it was completed: ValueError: no" in line
            assert reported == []
