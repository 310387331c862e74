"""What handlers return is kept for those who asked for it."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import timedelta

import pytest

from laneway import AsyncMessage, AsyncQueue, Constant, Message, Queue, Worker
from laneway.errors import (
    InvalidOption,
    MessageCancelled,
    MessageDead,
    NotEnded,
    PayloadTooLarge,
    ResultMissing,
)
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker import in_process
from tests.worker.databases import database_url
from tests.worker.test_worker import client, until

__all__ = ["database_url"]

HOUR = timedelta(hours=1)


@dataclass
class Receipt:
    order: int
    paid: bool


@run_async
async def test_every_kind_of_handler_has_its_result_kept(database_url: str) -> None:
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        worker = Worker(queue, processes=1)

        @worker.handler("async")
        async def in_loop(order: int) -> Receipt:
            return Receipt(order, True)

        @worker.handler("thread")
        def in_thread(order: int) -> Receipt:
            return Receipt(order, False)

        @worker.handler("manual", ack="manual")
        async def by_hand(order: int, message: AsyncMessage) -> None:
            await message.complete(result=Receipt(order, True))

        @worker.handler("manual thread", ack="manual")
        def by_hand_in_thread(order: int, message: Message) -> None:
            message.complete(result=Receipt(order, True))

        worker.handler("process", run="process")(in_process.doubled)
        kinds = ("async", "thread", "manual", "manual thread")
        sent = [await queue.publish(n, kind=kind, keep_result=HOUR) for n, kind in enumerate(kinds)]
        apart = await queue.publish(21, kind="process", keep_result=HOUR)
        plain = await queue.publish(1, kind="thread")
        await worker.serve(until_empty=True)
        found = [await each.result(Receipt, timeout=30) for each in sent]
        assert found == [
            Receipt(0, True),
            Receipt(1, False),
            Receipt(2, True),
            Receipt(3, True),
        ]
        assert await apart.result(timeout=30) == {"doubled": 42}
        with pytest.raises(ResultMissing, match="is not kept"):
            await plain.result(timeout=30)


@run_async
async def test_the_handler_can_ask_for_it_and_the_message_wins(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.handler("kept", keep_result=60)
        async def kept(number: int) -> int:
            return number + 1

        own = await queue.publish(1, kind="kept")
        longer = await queue.publish(2, kind="kept", keep_result=HOUR)
        await worker.serve(until_empty=True)
        assert await own.result(int, timeout=30) == 2
        short, long = await own.wait(30), await longer.wait(30)
        assert short.kept_until and short.ended_at and long.kept_until and long.ended_at
        assert short.kept_until - short.ended_at == timedelta(seconds=60)
        assert long.kept_until - long.ended_at == HOUR
        with pytest.raises(InvalidOption, match="ack='first'"):
            worker.handler("first", ack="first", keep_result=60)(kept)


@run_async
async def test_a_result_that_cannot_be_kept_makes_a_dead_letter(place: Place) -> None:
    """It is not retried: the work was done, and would return the same."""
    async with client(place, max_payload=100) as queue:
        worker = Worker(queue, processes=1)
        calls = []

        @worker.handler("large", retry=Constant(every=0))
        async def large(number: int) -> str:
            calls.append(number)
            return "x" * 101

        @worker.handler("odd", retry=Constant(every=0))
        def odd(number: int) -> object:
            calls.append(number)
            return object()

        worker.handler("process", run="process")(in_process.large_result)
        kinds = ("large", "odd", "process")
        sent = [await queue.publish(n, kind=kind, keep_result=HOUR) for n, kind in enumerate(kinds)]
        unasked = await queue.publish(5, kind="odd")
        await worker.serve(until_empty=True)
        whats = ("PayloadTooLarge", "InvalidPayload", "PayloadTooLarge")
        for each, what in zip(sent, whats, strict=True):
            with pytest.raises(MessageDead, match=what) as caught:
                await each.result(timeout=30)
            assert caught.value.ending.reason == "result"
        assert sorted(calls) == [0, 1, 5]
        assert (await unasked.wait(30)).outcome == "completed"
        assert PayloadTooLarge.__name__ in str((await sent[0].wait(30)).error_type)


@run_async
async def test_a_result_commits_with_the_handlers_transaction(place: Place) -> None:
    import psycopg

    async with client(place) as queue:
        worker = Worker(queue)

        @worker.handler("pays", retry=Constant(every=0, attempts=2))
        async def pays(number: int, connection: psycopg.AsyncConnection) -> int:
            if number == 2:
                raise ValueError("undone")
            return number

        done = await queue.publish(1, kind="pays", keep_result=HOUR)
        undone = await queue.publish(2, kind="pays", keep_result=HOUR)
        await worker.serve(until_empty=True)
        assert await done.result(timeout=30) == 1
        with pytest.raises(MessageDead, match="undone"):
            await undone.result(timeout=30)


@run_async
async def test_a_cancelled_handler_tells_those_who_wait(place: Place) -> None:
    async with client(place, name="cancelled") as queue:
        await queue.configure(history="none")
        worker = Worker(queue)
        begun = asyncio.Event()

        @worker.default_handler
        async def forever(number: int) -> None:
            begun.set()
            await asyncio.sleep(600)

        running = asyncio.create_task(worker.serve())
        try:
            published = await queue.publish(1, keep_result=HOUR)
            await begun.wait()
            await queue.cancel([published.id or 0], running=True)
            with pytest.raises(MessageCancelled):
                await published.result(timeout=60)
        finally:
            worker.stop()
            await running
            await queue.configure(history="all")


@run_async
async def test_those_who_wait_in_a_client_share_one_bell_and_are_rung(place: Place) -> None:
    """With pauses that never end only the bell can wake them."""
    from laneway.client.aio import events

    async with client(place, name="bell") as queue, client(place, name="bell") as other:
        published = [await queue.publish(n, keep_result=HOUR) for n in range(50)]
        before = events._FIRST_PAUSE, events._MOST_PAUSE, events._RING_AFTER
        events._FIRST_PAUSE = events._MOST_PAUSE = 600.0
        events._RING_AFTER = 0.0
        try:
            waiting = [asyncio.create_task(each.result(int, timeout=60)) for each in published]
            bell = queue.database.end_bell
            while bell is None:
                await asyncio.sleep(0.01)
                bell = queue.database.end_bell
            await until(lambda: bell._waiting == 50)  # type: ignore[attr-defined]
            async with asyncio.timeout(60):
                while not all(task.done() for task in waiting):
                    for message in await other.claim(10):
                        await message.complete(result=message.json())
                    await asyncio.sleep(0.05)
            assert sorted(await asyncio.gather(*waiting)) == list(range(50))
            assert queue.database.end_bell is bell
        finally:
            events._FIRST_PAUSE, events._MOST_PAUSE, events._RING_AFTER = before


def test_threads_wait_and_get_what_they_asked_for(database_url: str) -> None:
    with Queue(database_url) as queue:
        queue.install()
        published = [queue.publish(n, keep_result=HOUR) for n in range(8)]
        with pytest.raises(NotEnded):
            published[0].result(timeout=0)
        found: dict[int, int] = {}

        def wait(number: int) -> None:
            found[number] = published[number].result(int, timeout=60)

        threads = [threading.Thread(target=wait, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        threads[0].join(0.5)
        while messages := queue.claim(3):
            queue.complete(messages, results=[m.json() * 10 for m in messages])
        for thread in threads:
            thread.join()
        assert found == {n: 10 * n for n in range(8)}
    assert not [t for t in threading.enumerate() if t.name == "laneway-results"]


def test_what_publish_answers_is_still_an_id_and_a_status(database_url: str) -> None:
    import pickle

    from laneway import Published

    with Queue(database_url) as queue:
        queue.install()
        published = queue.publish(1)
        id, status = published
        assert published == Published(id, "published") == (id, status)
        assert repr(published) == f"Published(id={id}, status='published')"
        copy = pickle.loads(pickle.dumps(published))
        assert type(copy) is Published and copy == published
