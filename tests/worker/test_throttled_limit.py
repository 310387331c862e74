"""Throttled with a limit: everything behind that shared limit rests; what handlers make of limits
that adapt or have a breaker."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from laneway import Defer, Fail, NoRetry, Queue, Throttled, Worker
from laneway.limits import Adapt, Breaker


def test_the_limit_rests_and_the_channel_goes_on(tmp_path: Path) -> None:
    with Queue(f"sqlite:///{tmp_path}/q.db") as queue:
        queue.install()
        worker = Worker(queue)
        seen: list[int] = []

        @worker.handler("call")
        def call(payload: int) -> None:
            seen.append(payload)
            if payload == 1:
                raise Throttled(60, limit="stripe")

        queue.publish(1, kind="call", channel="a", limits=["stripe"])
        worker.run(until_empty=True)
        queue.publish(2, kind="call", channel="a")
        queue.publish(3, kind="call", channel="b", limits=["stripe"])
        worker.run(until_empty=True)
        assert seen == [1, 2]
        limit = queue.limits["stripe"].get()
        assert limit.resting_until is not None and limit.waiting == 2
        assert not queue.channel("a").policy().paused


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/q.db") as queue:
        queue.install()
        yield queue


def _worker(queue: Queue, handler: Callable[[int], object], **options: Any) -> Worker:
    worker = Worker(queue)
    worker.handler("call", **options)(handler)
    return worker


def _publish(queue: Queue, count: int, **options: Any) -> None:
    for number in range(count):
        queue.publish(number, kind="call", channel=f"c{number}", limits=["api"], **options)


def test_throttled_halves_a_limit_that_adapts_once_for_all_that_ran(queue: Queue) -> None:
    queue.limits["api"].set(concurrency=8, adapt=Adapt(min=1, max=8))
    together = threading.Barrier(8)

    def call(payload: int) -> None:
        together.wait(30)  # all eight run
        raise Throttled(3600, limit="api")

    _publish(queue, 8)
    _worker(queue, call).run(until_empty=True)
    queue.upkeep()
    assert queue.limits["api"].get().adapted == 4


def test_throttled_without_the_limit_is_about_the_tenant(queue: Queue) -> None:
    queue.limits["api"].set(concurrency=8, adapt=Adapt(min=1, max=8), breaker=Breaker(minimum=1))

    def call(payload: int) -> None:
        raise Throttled(3600)

    _publish(queue, 2)
    _worker(queue, call).run(until_empty=True)
    queue.upkeep()
    found = queue.limits["api"].get()
    assert (found.adapted, found.state, found.ended) == (8, "closed", 0)


def test_a_handler_that_times_out_halves_it_and_is_a_failure(queue: Queue) -> None:
    queue.limits["api"].set(concurrency=6, adapt=Adapt(min=1, max=8), breaker=Breaker(minimum=1))

    async def call(payload: int) -> None:
        await asyncio.sleep(60)

    _publish(queue, 1, max_attempts=1)
    _worker(queue, call, timeout=0.05).run(until_empty=True)
    queue.upkeep()
    found = queue.limits["api"].get()
    assert (found.adapted, found.state, found.failed) == (3, "open", 1)


def test_a_breaker_counts_what_handlers_return_and_raise(queue: Queue) -> None:
    queue.limits["api"].set(concurrency=10, breaker=Breaker(minimum=6))
    seen: list[int] = []

    def call(payload: int) -> object:
        seen.append(payload)
        if payload == 1:
            return Fail("no such customer")
        if payload == 2:
            return Defer(3600)  # progress
        if payload in (3, 4):
            raise RuntimeError("down")
        return None

    _publish(queue, 6, max_attempts=1)
    _worker(queue, call, retry=NoRetry()).run(until_empty=True)
    queue.publish(9, kind="call", channel="late", limits=["api"])
    _worker(queue, call).run(until_empty=True)
    found = queue.limits["api"].get()
    assert (found.state, found.ended, found.failed) == ("open", 6, 3)
    assert 9 not in seen and found.waiting == 1


def test_messages_behind_plain_limits_are_noted_by_nobody(queue: Queue) -> None:
    queue.limits["api"].set(concurrency=10)
    engine = queue.database.engine
    _publish(queue, 2)
    first, second = queue.claim(2)
    first.complete()
    assert "api" in engine.limits.plain_limits
    queue.limits["api"].set(breaker=Breaker(minimum=1))
    assert "api" not in engine.limits.plain_limits
    second.fail("no")
    queue.upkeep()
    assert queue.limits["api"].get().state == "open"
