"""The worker on the other databases, and the helpers for users' tests."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import AsyncQueue, Constant, Message, Queue, Worker
from penstock.testing import assert_published, drain, drain_async
from penstock.testing.fixtures import penstock_queue
from tests.client.worlds import run_async
from tests.worker.test_worker import outcomes

__all__ = ["penstock_queue"]


def test_a_user_tests_his_handlers(penstock_queue: Queue) -> None:
    worker = Worker(penstock_queue)

    @worker.handler("order", retry=Constant(every=0, attempts=2))
    def order(payload: dict[str, int], message: Message) -> None:
        if payload["id"] < 0:
            raise ValueError("no such order")
        penstock_queue.publish(payload, kind="receipt", channel=message.channel)

    @worker.handler("receipt")
    def receipt(payload: dict[str, int]) -> None: ...

    penstock_queue.publish({"id": 1}, kind="order", channel="tenant")
    penstock_queue.publish({"id": -1}, kind="order")
    assert_published(penstock_queue, kind="order", payload={"id": 1}, count=1)
    assert_published(penstock_queue, kind="order", count=2)
    with pytest.raises(AssertionError, match="2 expected, 1 found"):
        assert_published(penstock_queue, channel="tenant", count=2)
    drain(worker)
    with pytest.raises(AssertionError, match="the queue is empty"):
        assert_published(penstock_queue)
    (letter,) = penstock_queue.dead_letters.list()
    assert letter.error == "no such order"


@run_async
async def test_on_sqlite_leases_are_extended_and_stops_are_clean(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with AsyncQueue(url, lease=timedelta(seconds=1)) as queue:
        await queue.install()
        worker = Worker(queue, concurrency=5)

        @worker.handler()
        async def handle(payload: int) -> None:
            await asyncio.sleep(2.5)

        published = await queue.publish_many(range(5))
        await drain_async(worker)
        for one in published:
            assert await outcomes(queue, one.id) == ["completed"]
