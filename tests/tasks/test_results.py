"""What a published task answers with: the result, as the function is annotated."""

import asyncio
import copy
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from laneway import (
    INJECTED,
    AsyncMessage,
    AsyncQueue,
    Defer,
    Message,
    Published,
    Queue,
    Tasks,
    Worker,
)
from laneway.errors import DecodeError
from laneway.model import PublishStatus


@dataclass
class Receipt:
    number: int


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/queue.db"


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url) as queue:
        queue.install()
        yield queue


def test_a_result_is_what_the_function_says_that_it_returns(queue: Queue) -> None:
    worker = Worker(queue)

    @worker.task(keep_result=60)
    def receipt(number: int) -> "Receipt":
        return Receipt(number)

    @worker.task(keep_result=60)
    async def receipts(number: int) -> list[Receipt]:
        return [Receipt(number)]

    @worker.task(keep_result=60)
    def perhaps(number: int, message: Message = INJECTED) -> Receipt | Defer:
        return Receipt(number) if message.attempt > 1 else Defer(0)

    @worker.task(keep_result=60)
    def untold(number: int):  # type: ignore[no-untyped-def]
        return Receipt(number)

    @worker.task
    def completes(number: int, message: Message = INJECTED) -> None:
        message.complete(result=Receipt(number))

    @worker.task(keep_result=60)
    def wrong(number: int) -> Receipt:
        any: Any = number
        return any  # type: ignore[no-any-return]

    one, many, last = receipt.publish(1), receipts.publish(2), perhaps.publish(3)
    other, own, no = untold.publish(4), completes.using(keep_result=60).publish(5), wrong.publish(6)
    worker.run(until_empty=True)
    assert one.result() == Receipt(1) and one.wait().outcome == "completed"
    assert (many.result(), last.result()) == ([Receipt(2)], Receipt(3))
    results: list[Any] = [other.result(), own.result(), one.result(Any), own.result(Receipt)]
    assert results == [{"number": 4}, {"number": 5}, {"number": 1}, Receipt(5)]
    assert queue.result(one) == queue.result(one.id) == {"number": 1}
    with pytest.raises(DecodeError, match="6 is not a Receipt"):
        no.result()


def test_the_same_for_asyncio(url: str, queue: Queue) -> None:
    tasks = Tasks(keep_result=60)

    @tasks.task
    async def receipt(number: int) -> Receipt:
        return Receipt(number)

    async def publish_and_wait() -> None:
        async with AsyncQueue(url) as client:
            tasks.bind(client)
            worker = Worker(client)
            worker.include(tasks)
            published = await receipt.apublish(1)
            other = await receipt.using(channel="a").apublish(2)
            await worker.serve(until_empty=True)
            assert await published.result(timeout=30) == Receipt(1)
            assert await other.result() == Receipt(2)
            assert await other.result(dict) == {"number": 2}

    asyncio.run(publish_and_wait())


def test_of_a_task_whose_function_is_elsewhere(queue: Queue) -> None:
    worker, remote = Worker(queue), Tasks(keep_result=60)
    remote.bind(queue)
    worker.handler("charge")(lambda number: Receipt(number))
    worker.handler("refund")(lambda number: Receipt(number))

    @remote.declare
    def charge(number: int) -> Receipt:
        raise NotImplementedError

    refund = remote.declare("refund", int)
    charged, refunded = charge.publish(1), refund.publish(2)
    worker.run(until_empty=True)
    assert charged.result() == Receipt(1)
    assert (refunded.result(), refunded.result(Receipt)) == ({"number": 2}, Receipt(2))


def test_a_handler_waits_for_the_result_of_another(url: str, queue: Queue) -> None:
    """In a thread, through the worker's own client: that one is of the event loop."""
    worker, seen = Worker(AsyncQueue(url)), list[object]()

    @worker.task(keep_result=60)
    async def inner(number: int) -> Receipt:
        return Receipt(number)

    @worker.task
    def in_thread(number: int) -> None:
        published = inner.publish(number)
        seen.append((threading.current_thread() is not threading.main_thread(), published.status))
        seen.append((published.wait(30).outcome, published.result(timeout=30)))

    @worker.task
    async def in_loop(number: int, message: AsyncMessage = INJECTED) -> None:
        seen.append(await (await inner.apublish(number)).result(timeout=30))

    queue.publish(1, kind="in_thread")
    worker.run(until_empty=True)
    queue.publish(2, kind="in_loop")
    worker.run(until_empty=True)
    assert seen == [(True, "published"), ("completed", Receipt(1)), Receipt(2)]


def test_a_copy_and_the_answer_of_a_double_are_plain(queue: Queue) -> None:
    tasks = Tasks()

    class Double:
        def publish(self, payload: bytes, **options: Any) -> Published:
            status: PublishStatus = "published"
            return Published(7, status)

    @tasks.task
    def receipt(number: int) -> Receipt:
        return Receipt(number)

    assert tuple(receipt.using(client=Double()).publish(1)) == (7, "published")
    published = copy.copy(receipt.using(client=queue).publish(1))
    assert type(published) is Published
