"""Batch tasks: many messages in one call, each with an outcome of its own."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from laneway import Defer, Fail, Message, NoRetry, Queue, Worker
from laneway.errors import InvalidCall, InvalidInput, InvalidOption


@dataclass
class Click:
    n: int


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield queue


@pytest.mark.parametrize("in_thread", [True, False])
def test_many_messages_in_one_call(queue: Queue, in_thread: bool) -> None:
    worker, seen = Worker(queue, concurrency=40), []
    decorate = worker.batch_task(size=20, wait=600, queue="clicks", key=lambda click: str(click.n))
    if in_thread:

        @decorate
        def count(clicks: list[Click], messages: list[Message]) -> None:
            assert [int(m.key or "") for m in messages] == [click.n for click in clicks]
            seen.append([click.n for click in clicks])

        count.publish_many(count.message(Click(n)) for n in range(100))
    else:

        @decorate
        async def count_async(clicks: list[Click]) -> None:
            await asyncio.sleep(0)
            seen.append([click.n for click in clicks])

        count_async.publish_many(count_async.message(Click(n)) for n in range(100))
    worker.run(until_empty=True)
    assert sorted(n for batch in seen for n in batch) == list(range(100))
    assert Counter(map(len, seen)) == {20: 5}
    assert queue.stats() == []


def test_what_is_there_after_the_wait_goes(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.batch_task(size=50, wait=0.05)
    def count(clicks: list[Click]) -> None:
        seen.append(len(clicks))

    for n in range(3):
        count.publish(Click(n))
    worker.run(until_empty=True)
    assert sum(seen) == 3
    count([Click(1), Click(2)])
    assert seen[-1] == 2


def test_each_has_an_outcome_of_its_own(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.batch_task(size=50, wait=0.2, retry=NoRetry())
    def decide(numbers: list[int], messages: list[Message]) -> list[Any]:
        seen.extend(numbers)
        outcomes: dict[int, Any] = {
            0: None,
            1: Fail("no"),
            2: Defer(3600),
            3: ValueError("wrong"),
            4: "a result",
        }
        return [outcomes[number] for number in numbers]

    ids = [decide.publish(n).id for n in range(5)]
    queue.publish("no number", kind="decide")
    worker.run(until_empty=True)
    assert sorted(seen) == [0, 1, 2, 3, 4]
    ends = [[entry.outcome for entry in queue.history(id)][-1] for id in ids if id is not None]
    assert ends == ["completed", "failed", "deferred", "failed", "completed"]
    reasons = Counter(letter.reason for letter in queue.dead_letters.list())
    assert reasons == {"no": 1, "gave_up": 1, "payload": 1}


@pytest.mark.parametrize("wrong", ["raises", "too few", "no list", "too long"])
def test_an_error_counts_for_all(queue: Queue, wrong: str) -> None:
    worker = Worker(queue)
    release = asyncio.Event()

    @worker.batch_task(
        size=3, wait=600, retry=NoRetry(), timeout=0.1 if wrong == "too long" else 30
    )
    async def fails(numbers: list[int]) -> Any:
        if wrong == "raises":
            raise ZeroDivisionError
        if wrong == "too long":
            await release.wait()
        return [None] if wrong == "too few" else 5

    fails.publish_many(map(fails.message, range(3)))
    worker.run(until_empty=True)
    letters = queue.dead_letters.list()
    assert len(letters) == 3
    (kind,) = {letter.error_type for letter in letters}
    expected = {"raises": "ZeroDivisionError", "too long": "TimeoutError"}
    assert str(kind).endswith(expected.get(wrong, "HandlerFailed"))
    if wrong in ("too few", "no list"):
        assert "one outcome for each of its 3 messages" in str(letters[0].error)


def test_limits_hold_for_each_message(queue: Queue) -> None:
    """A channel with a concurrency of two never has more than two in a batch."""
    worker, seen = Worker(queue), []
    queue.channel("tight").limit(concurrency=2)

    @worker.batch_task(size=50, wait=0.05)
    def count(numbers: list[int], messages: list[Message]) -> None:
        seen.append(Counter(message.channel for message in messages))

    queue.publish_many([count.using(channel="tight").message(n) for n in range(8)])
    queue.publish_many([count.using(channel="free").message(n) for n in range(20)])
    worker.run(until_empty=True)
    assert sum(seen, Counter()) == {"tight": 8, "free": 20}
    assert max(batch["tight"] for batch in seen) <= 2


def test_a_stop_gives_back_what_a_batch_has(queue: Queue) -> None:
    worker = Worker(queue, grace=0)

    @worker.batch_task(size=3, wait=600)
    async def hangs(numbers: list[int]) -> None:
        worker.stop()
        await asyncio.Event().wait()

    ids = [hangs.publish(n).id for n in range(3)]
    worker.run()
    assert [m.state for m in queue.messages()] == ["waiting"] * 3
    for id in ids:
        assert id is not None and [e.outcome for e in queue.history(id)] == ["given_back"]


def test_a_stop_while_it_gathers(queue: Queue) -> None:
    """What waits for others is given back after the grace: its handler has not begun."""
    worker, seen = Worker(queue, grace=0), []

    @worker.batch_task(size=50, wait=600)
    def count(numbers: list[int]) -> None:
        seen.append(numbers)

    @worker.task
    async def stop() -> None:
        worker.stop()

    count.publish(1)
    stop.publish()
    worker.run()
    assert seen == [] and [m.kind for m in queue.messages()] == ["count"]


def test_what_cannot_be_a_batch_task() -> None:
    worker = Worker(Queue("sqlite://"))

    def one(click: Click) -> None: ...

    def more(clicks: list[Click], copy: bool) -> None: ...

    def none(messages: list[Message]) -> None: ...

    def good(clicks: list[Click]) -> None: ...

    make: Any = worker.batch_task
    for function, text in (
        (one, "annotate 'click' as a list, e.g. list"),
        (more, "'copy' is neither"),
        (none, "its first parameter is a list"),
    ):
        with pytest.raises(InvalidOption, match=text):
            make(function)
    with pytest.raises(InvalidOption, match="it cannot run as 'process'"):
        worker.batch_task("a", run="process")(_at_module_level)
    for options in ({"size": 0}, {"size": 10_001}, {"wait": -1}):
        with pytest.raises(InvalidInput):
            make(**options)(good)
    task = make(good)
    with pytest.raises(InvalidCall, match="5 is not a Click"):
        task.publish(5)
    with pytest.raises(InvalidCall, match="too many positional arguments"):
        task.publish(Click(1), Click(2))


def _at_module_level(clicks: list[Click]) -> None: ...


def test_more_than_the_worker_holds(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    worker, seen = Worker(queue, concurrency=5), []

    @worker.batch_task(size=100, wait=600)
    def count(numbers: list[int]) -> None:
        seen.append(len(numbers))

    count.publish_many(map(count.message, range(10)))
    with caplog.at_level(logging.WARNING):
        worker.run(until_empty=True)
    assert seen == [5, 5]
    assert "takes 100 messages at once, but the worker's concurrency is 5" in caplog.text
