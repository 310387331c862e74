"""Handlers in processes of their own."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from laneway import Constant, Queue, Worker
from laneway.errors import InvalidOption
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker import in_process
from tests.worker.test_worker import client, outcomes, until


@run_async
async def test_a_process_gets_the_message_and_says_what_became_of_it(
    place: Place, tmp_path: Path
) -> None:
    async with client(place) as queue:
        worker = Worker(queue, processes=1)
        for name in ("note", "steps", "state_of_bytes"):
            worker.handler(name, run="process")(getattr(in_process, name))
        file = tmp_path / "note"
        noted = await queue.publish({"file": str(file)}, kind="note", headers={"h": "x"})
        stepped = await queue.publish(1, kind="steps")
        bytes_ = await queue.publish(1, kind="state_of_bytes")
        await worker.serve(until_empty=True)
        process, *rest = file.read_text().split()
        assert int(process) != os.getpid()
        assert rest == [str(noted.id), "1", "x"]
        assert await outcomes(queue, stepped.id) == ["deferred", "deferred", "failed"]
        assert await outcomes(queue, bytes_.id) == ["deferred", "completed"]
        (letter,) = await queue.dead_letters.list()
        assert (letter.reason, letter.error) == ("enough", "ValueError: two steps")


@run_async
async def test_a_process_that_dies_fails_only_its_message(place: Place, tmp_path: Path) -> None:
    async with client(place) as queue:
        worker = Worker(queue, processes=2)
        once = Constant(every=0, attempts=2)
        for name in ("segfault", "exits", "leaves", "note", "raises"):
            worker.handler(name, run="process", retry=once)(getattr(in_process, name))
        worker.handler("sleeps", run="process", retry=once, timeout=1.5)(in_process.sleeps)
        kinds = ("segfault", "exits", "leaves", "sleeps", "raises")
        for kind in kinds:
            await queue.publish(5, kind=kind)
        files = [tmp_path / str(number) for number in range(4)]
        for file in files:
            await queue.publish({"file": str(file)}, kind="note")
        await worker.serve(until_empty=True)
        assert all(file.exists() for file in files)
        letters = {letter.kind: letter for letter in await queue.dead_letters.list()}
        assert set(letters) == set(kinds)
        assert {letter.attempt for letter in letters.values()} == {2}
        assert "by signal 11" in str(letters["segfault"].error)
        assert "exit code 3" in str(letters["exits"].error)
        assert letters["leaves"].error == "builtins.SystemExit: not so"
        assert letters["sleeps"].error_type == "TimeoutError"
        assert letters["raises"].error_type == "tests.worker.in_process.Unlucky"
        assert letters["raises"].error == "5: again"


@run_async
async def test_out_of_time_the_process_ends_and_the_next_message_has_a_new_one(
    place: Place, tmp_path: Path
) -> None:
    async with client(place) as queue:
        worker = Worker(queue, processes=1)
        worker.handler("lingers", run="process", ack="reject", timeout=3)(in_process.lingers)
        worker.handler("note", run="process")(in_process.note)
        # The first one starts the process, so that the time of the second is its handler's own.
        for kind, name in (("note", "first"), ("lingers", "lingers"), ("note", "note")):
            await queue.publish({"file": str(tmp_path / name)}, kind=kind)
        await worker.serve(until_empty=True)
        (letter,) = await queue.dead_letters.list()
        assert letter.error_type == "TimeoutError"
        first, lingering, noting = (
            int((tmp_path / name).read_text().split()[0]) for name in ("first", "lingers", "note")
        )
        assert first == lingering != noting
        with pytest.raises(ProcessLookupError):
            os.kill(lingering, 0)


@run_async
async def test_the_death_of_a_process_is_seen_though_it_leaves_another_behind(
    place: Place, tmp_path: Path
) -> None:
    async with client(place) as queue:
        worker = Worker(queue, processes=1)
        worker.default_handler(run="process", ack="reject")(in_process.forks_and_exits)
        await queue.publish(1)
        await asyncio.wait_for(worker.serve(until_empty=True), 20)
        (letter,) = await queue.dead_letters.list()
        assert "exit code 3" in str(letter.error)


@pytest.mark.parametrize("how", ["before it was sent", "before it was taken"])
def test_a_message_is_not_to_blame_for_a_process_that_died_idle(
    place: Place, tmp_path: Path, how: str
) -> None:
    @run_async
    async def check() -> None:
        async with client(place) as queue:
            worker = Worker(queue, processes=1)
            worker.default_handler(run="process", ack="reject")(in_process.note)
            serving = asyncio.create_task(worker.serve())
            first, second = tmp_path / "first", tmp_path / "second"
            await queue.publish({"file": str(first)})
            async with asyncio.timeout(20):
                while await queue.stats():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            idle = int(first.read_text().split()[0])
            is_sent_first = how == "before it was taken"
            os.kill(idle, signal.SIGSTOP if is_sent_first else signal.SIGKILL)
            published = await queue.publish({"file": str(second)})
            if is_sent_first:
                await asyncio.sleep(1)
                os.kill(idle, signal.SIGKILL)
            await until(second.exists)
            worker.stop()
            await serving
            assert await outcomes(queue, published.id) == ["completed"]

    check()


@run_async
async def test_a_process_can_end_the_programs_that_it_starts(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, processes=1)
        worker.default_handler(run="process", ack="reject")(in_process.terminates)
        published = await queue.publish(1)
        await worker.serve(until_empty=True)
        assert await outcomes(queue, published.id) == ["completed"]


@run_async
async def test_strategies_see_the_type_of_an_error_in_a_process(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, processes=1)
        retry = Constant(every=0, give_up_on=(in_process.Unlucky,))
        worker.default_handler(run="process", retry=retry)(in_process.raises)
        await queue.publish(5)
        await worker.serve(until_empty=True)
        (letter,) = await queue.dead_letters.list()
        assert (letter.reason, letter.attempt) == ("gave_up", 1)


def test_a_function_that_no_other_process_finds_is_refused(place: Place) -> None:
    def local(payload: int) -> None: ...

    worker = Worker(Queue(place.url))
    with pytest.raises(InvalidOption, match="cannot be imported in another process"):
        worker.default_handler(run="process")(local)


@pytest.mark.repeats("test_kills waits for processes too")
@run_async
async def test_the_wait_for_a_process_is_not_part_of_the_handlers_time(place: Place) -> None:
    """Nor for the lease, which is kept for as long as the handler may run."""
    async with client(place, lease=timedelta(seconds=2)) as queue:
        worker = Worker(queue, processes=1)
        worker.default_handler(run="process", timeout=4)(in_process.naps)
        published = await queue.publish_many([3.0] * 3)
        await worker.serve(until_empty=True)
        for one in published:
            assert await outcomes(queue, one.id) == ["completed"]
