"""Flows in a worker: handlers of every kind read what came before them, and add to their flow."""

import asyncio
from collections.abc import Iterator

import pytest

from laneway import INJECTED, AsyncMessage, AsyncQueue, Constant, Message, Queue, Worker
from tests.place import Place


@pytest.fixture
def queue(place: Place) -> Iterator[Queue]:
    with Queue(place.url, schema=place.schema) as client:
        client.install()
        yield client


def test_handlers_add_nodes_and_read_results(queue: Queue) -> None:
    worker = Worker(queue, concurrency=4)
    seen: list[object] = []
    attempts: list[int] = []

    @worker.task(retry=Constant(every=0))
    async def split(pages: int, message: AsyncMessage = INJECTED) -> None:
        async with message.flow(keep_result=60) as flow:
            found = [flow.add(page, n) for n in range(pages)]
            flow.add(merge, after=found)
        attempts.append(message.attempt)
        if message.attempt == 1:
            raise ValueError("added, and not completed")

    @worker.task(max_attempts=3)
    def page(number: int, message: Message = INJECTED) -> int:
        assert [parent.kind for parent in message.parents()] == []
        with message.flow() as flow:
            flow.add(note, f"page {number}")
        return number * 10

    @worker.task
    async def merge(message: AsyncMessage = INJECTED) -> int:
        parents = await message.parents()
        return sum(parent.result(int) for parent in parents)

    @worker.task
    def note(text: str) -> None:
        seen.append(text)

    @worker.task
    def tell(message: Message = INJECTED) -> None:
        seen.append([(parent.kind, parent.state) for parent in message.parents()])

    with queue.flow("import:1") as flow:
        flow.add(tell, after=flow.add(split.using(), 3), when="ended")
    worker.run(until_empty=True)
    assert attempts == [1, 2]
    texts = sorted(text for text in seen if isinstance(text, str))
    assert texts == ["page 0", "page 1", "page 2"]
    assert [("split", "completed")] in seen
    ended = queue.flows.get(flow.id or 0)
    assert (ended.state, ended.nodes) == ("completed", 9)


def test_a_producer_in_asyncio(queue: Queue) -> None:
    address = queue._address

    async def publish() -> int | None:
        async with AsyncQueue(address.url, schema=address.schema) as client:
            async with client.flow("async") as flow:
                flow.add("child", after=flow.add("parent"))
            return flow.id

    id = asyncio.run(publish())
    assert queue.flows.get(id or 0).nodes == 2
