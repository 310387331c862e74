"""Throttled: a handler that is asked to slow down pauses its channel."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from laneway import AsyncMessage, AsyncQueue, Throttled, Worker
from laneway.errors import DatabaseFailed, InvalidTime
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker import in_process
from tests.worker.test_worker import client, outcomes

LONG = timedelta(hours=1)


def _raises(calls: list[int]) -> Callable[..., Any]:
    async def handler(payload: int) -> None:
        calls.append(payload)
        if len(calls) == 1:
            raise Throttled(LONG)

    return handler


def _returns_in_a_thread(calls: list[int]) -> Callable[..., Any]:
    def handler(payload: int) -> object:
        calls.append(payload)
        return Throttled(LONG) if len(calls) == 1 else None

    return handler


@pytest.mark.parametrize("make", [_raises, _returns_in_a_thread])
@run_async
async def test_a_throttled_message_runs_again_and_counts_no_attempt(
    place: Place, make: Callable[[list[int]], Callable[..., Any]]
) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        calls: list[int] = []
        worker.default_handler()(make(calls))
        published = await queue.publish(7)
        await worker.serve(until_empty=True)
        assert await _throttled(queue, "default") == [True]
        await queue.channel("default").resume()
        await worker.serve(until_empty=True)
        assert calls == [7, 7]
        assert (await outcomes(queue, published.id))[-1] == "completed"
        assert published.id is not None
        assert {entry.attempt for entry in await queue.history(published.id)} == {1}


async def _throttled(queue: AsyncQueue, *channels: str) -> list[bool]:
    return [(await queue.channel(name).policy()).throttled for name in channels]


@run_async
async def test_its_channel_starts_nothing_and_others_go_on(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=1)
        calls: list[str] = []

        @worker.default_handler()
        async def handler(payload: int, message: AsyncMessage) -> None:
            calls.append(message.channel)
            if message.channel == "slow":
                raise Throttled(retry_after=3600)
            if len(calls) == 4:
                worker.stop()

        await queue.publish_many([1, 2, 3], channel="slow")
        await queue.publish_many([1, 2, 3], channel="free")
        await worker.serve()
        assert sorted(calls) == ["free"] * 3 + ["slow"]
        assert await _throttled(queue, "slow", "free") == [True, False]
        assert (await queue.channel("slow").stats()).waiting == 3


@run_async
async def test_one_of_a_batch_is_throttled(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        calls: list[list[int]] = []

        @worker.batch_task(size=2, wait=5)
        async def work(payloads: list[int]) -> Iterable[object]:
            calls.append(payloads)
            return [Throttled(LONG) if p == 1 and len(calls) == 1 else None for p in payloads]

        ids = [(await work.apublish(n)).id for n in (1, 2)]
        await worker.serve(until_empty=True)
        assert await _throttled(queue, "default") == [True]
        await queue.channel("default").resume()
        await queue.publish(3, kind=work.kind)
        await worker.serve(until_empty=True)
        assert [(await outcomes(queue, id))[-1] for id in ids] == ["completed", "completed"]


@pytest.mark.repeats("test_processes starts processes too")
@run_async
async def test_a_handler_in_a_process_is_throttled(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, processes=1, concurrency=1)
        worker.handler("slow", run="process")(in_process.is_throttled)

        @worker.handler("last")
        async def last(payload: int) -> None:
            worker.stop()

        await queue.publish(3600, kind="slow", channel="a")
        await queue.publish(1, kind="last", channel="b", delay=0.05)
        await worker.serve()
        assert await _throttled(queue, "a") == [True]


@run_async
async def test_a_channel_that_cannot_be_paused_leaves_only_the_message_waiting(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=1)

        def broken(*_: object) -> Any:
            raise DatabaseFailed("no")

        monkeypatch.setattr(type(queue.database.engine.channels), "throttle", broken)

        @worker.default_handler()
        async def handler(payload: int) -> None:
            if payload == 2:
                worker.stop()
            else:
                raise Throttled(retry_after=3600)

        await queue.publish_many([1, 2])
        await worker.serve()
        assert await _throttled(queue, "default") == [False]
        stats = await queue.channel("default").stats()
        assert (stats.waiting, stats.scheduled) == (0, 1)
        assert "is not paused" in caplog.text


def test_what_is_no_duration_is_refused() -> None:
    for wrong in (-1, float("nan"), "30"):
        with pytest.raises(InvalidTime):
            Throttled(wrong)  # type: ignore[arg-type]
