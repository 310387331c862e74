"""Outcomes that cannot be written: an error of the handler, and the end of its place."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from laneway import Constant, Defer, FailedAttempt, Worker
from laneway.worker.execute.pool import HandlerPool
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, outcomes

NOW = timedelta(0)


class Broken(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("not loaded")


class Opaque(msgspec.Struct):
    value: object


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Raising(dict[str, int]):
    def items(self) -> Any:
        raise Wordless


STATES: dict[str, Callable[[], object]] = {
    "raises": lambda: Broken(a=1),
    "raises without a word": lambda: Raising(a=1),
    "a structure of anything": lambda: Opaque(object()),
    "memory with holes": lambda: {"a": memoryview(bytearray(8))[::2]},
}


@pytest.mark.parametrize("state", STATES)
def test_a_state_that_cannot_be_written_is_the_handlers_error(place: Place, state: str) -> None:
    @run_async
    async def check() -> None:
        async with client(place) as queue:
            worker = Worker(queue, concurrency=1)

            @worker.default_handler(retry=Constant(every=0, attempts=2))
            async def handle(payload: int) -> Defer:
                return Defer(NOW, state=STATES[state]())

            published = await queue.publish(1)
            await asyncio.wait_for(worker.serve(until_empty=True), 20)
            assert await outcomes(queue, published.id) == ["retried", "failed"]

    check()


@run_async
async def test_a_strategy_that_asks_for_centuries_is_overruled(place: Place) -> None:
    class Huge:
        def delay(self, tried: FailedAttempt) -> timedelta:
            return timedelta(days=50_000)

    async with client(place) as queue:
        worker = Worker(queue, concurrency=1, max_messages=1)

        @worker.default_handler(retry=Huge())
        async def handle(payload: int) -> None:
            raise ValueError

        published = await queue.publish(1)
        await asyncio.wait_for(worker.serve(), 20)
        assert await outcomes(queue, published.id) == ["retried"]


@run_async
async def test_a_place_comes_free_whatever_happens_at_the_end(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no desk")

    monkeypatch.setattr(HandlerPool, "_settle", fails)
    async with client(place) as queue:
        worker = Worker(queue, concurrency=1, max_messages=2)
        ran = []

        @worker.default_handler
        async def handle(payload: int) -> None:
            ran.append(payload)

        await queue.publish_many([1, 2])
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)  # the tasks' errors, which are meant
        await asyncio.wait_for(worker.serve(), 20)
        assert ran == [1, 2]
