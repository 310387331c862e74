"""Hooks that are told of dead letters."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import AsyncQueue, Constant, DeadLetter, Fail, Queue, Worker
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.databases import database_url
from tests.worker.harness import eventually, kill, worker_processes
from tests.worker.test_worker import until

__all__ = ["database_url"]


def told_by(worker: Worker) -> list[DeadLetter]:
    letters: list[DeadLetter] = []

    @worker.on_dead
    async def tell(letter: DeadLetter) -> None:
        await asyncio.sleep(0.01)
        letters.append(letter)

    return letters


def test_told_of_every_dead_letter_once(database_url: str) -> None:
    with Queue(database_url) as queue:
        queue.install()
        queue.publish("by hand", kind="elsewhere")
        queue.claim()[0].fail("not mine", error=ValueError("no such order"))
        worker = Worker(queue)
        letters = told_by(worker)
        also: list[int] = []
        worker.on_dead(lambda letter: also.append(letter.id))

        @worker.handler(retry=Constant(every=0, attempts=2))
        def strategy(payload: int) -> None:
            raise KeyError(payload)

        @worker.handler(retry=Constant(every=0))
        def last(payload: int) -> None:
            raise KeyError(payload)

        @worker.handler
        async def fails(payload: int) -> None:
            raise Fail("no customer")

        @worker.handler
        async def typed(payload: int) -> None: ...

        queue.publish(1, kind="strategy", channel="tenant-1", headers={"h": 1})
        queue.publish(2, kind="last", max_attempts=3)
        queue.publish(3, kind="fails")
        queue.publish("text", kind="typed")
        worker.run(until_empty=True)
        found = {letter.kind: letter for letter in letters}
        assert len(letters) == len(found) == 5 == len(also)
        assert {kind: (one.reason, one.attempt) for kind, one in found.items()} == {
            "elsewhere": ("not mine", 1),
            "strategy": ("gave_up", 2),
            "last": ("max_attempts", 3),
            "fails": ("no customer", 1),
            "typed": ("payload", 1),
        }
        assert found["elsewhere"].error == "no such order"
        strategy_letter = found["strategy"]
        assert (strategy_letter.channel, strategy_letter.headers) == ("tenant-1", {"h": 1})
        assert strategy_letter.payload == b"1" and strategy_letter.error_type == "KeyError"
        assert "raise KeyError(payload)" in (strategy_letter.traceback or "")
        assert found["strategy"] in queue.dead_letters.list()
        worker.run(until_empty=True)
        assert len(letters) == 5


def test_told_of_what_a_killed_worker_left(place: Place, tmp_path: Path) -> None:
    with worker_processes(place, tmp_path) as workers:
        id = workers.queue.publish(1, max_attempts=1).id
        first = workers.start("slow", seconds=60, lease=1)
        eventually(lambda: workers.lines("start"))
        kill(first)
        worker = Worker(Queue(place.url, schema=place.schema))
        worker.default_handler(lambda payload: None)
        letters = told_by(worker)

        @run_async
        async def work() -> None:
            serving = asyncio.create_task(worker.serve())
            await until(lambda: bool(letters), 60)
            worker.stop()
            await serving

        work()
        (letter,) = letters
        assert (letter.id, letter.reason, letter.attempt) == (id, "max_attempts", 1)
        assert letter.max_attempts == 1


@run_async
async def test_one_of_several_workers_tells(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        workers = [Worker(queue) for _ in range(3)]
        told = [told_by(worker) for worker in workers]
        for worker in workers:
            worker.default_handler(lambda payload: None)
        await queue.publish_many(range(12))
        for message in await queue.claim(12):
            await message.fail("no")
        await asyncio.gather(*(worker.serve(until_empty=True) for worker in workers))
    ids = [letter.id for letters in told for letter in letters]
    assert len(ids) == len(set(ids)) == 12


@pytest.mark.parametrize("fault", [ValueError, SystemExit])
def test_a_hook_that_fails_is_called_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: type[BaseException]
) -> None:
    now = datetime.now(UTC)
    queue = Queue(f"sqlite:///{tmp_path / 'queue.db'}", clock=lambda: now)
    with queue:
        queue.install()
        worker = Worker(queue)
        tries: list[tuple[Any, ...]] = []

        @worker.on_dead
        def tell(letter: DeadLetter) -> None:
            tries.append((letter.id, letter.reason))
            if len(tries) == 1:
                raise fault("the pager is down")

        @worker.handler(ack="reject")
        def bad(payload: int) -> None:
            raise KeyError

        queue.publish(1, kind="bad")
        worker.run(until_empty=True)
        assert len(tries) == 1
        assert "a hook for dead letters failed, and is called again" in caplog.text
        worker.run(until_empty=True)
        assert len(tries) == 1, "within the minute that it had"
        now += timedelta(seconds=61)
        worker.run(until_empty=True)
        now += timedelta(seconds=61)
        worker.run(until_empty=True)
        assert len(tries) == 2 and tries[0] == tries[1]


@run_async
async def test_told_while_the_worker_runs_on(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        module = Worker(queue)
        letters = told_by(module)

        @module.handler(ack="reject")
        async def bad(payload: int) -> None:
            raise KeyError

        worker = Worker(queue)
        worker.include(module)  # its hooks come along
        serving = asyncio.create_task(worker.serve())
        for number in range(3):
            await queue.publish(number, kind="bad")
            await until(lambda number=number: len(letters) == number + 1)  # type: ignore[misc]
        worker.stop()
        await serving
