"""The registry of worker processes: who is alive, who has vanished, who has stopped."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from laneway import AsyncQueue, Queue, Worker
from laneway.operations import SEEN_EVERY, VANISHED_AFTER, WorkerInfo
from tests.client.worlds import run_async
from tests.worker.databases import database_url

__all__ = ["database_url"]


@run_async
async def test_a_worker_is_listed_while_it_runs(database_url: str) -> None:
    async with AsyncQueue(database_url, name="emails") as queue:
        await queue.install()
        worker = Worker(queue, queues=["emails", "reports"], concurrency=7)
        seen: list[WorkerInfo] = []

        @worker.handler("look")
        async def look(payload: int) -> None:
            while not seen:
                seen.extend(await queue.workers())

        await queue.publish(1, kind="look")
        await worker.serve(max_messages=1)
        (info,) = seen
        assert info.pid == os.getpid() and info.state == "running"
        assert info.queues == ("emails", "reports") and info.kinds == ("look",)
        assert info.slots == 7 and info.name == queue.worker
        assert abs(info.seen_at - await queue.clock()) < timedelta(seconds=60)
        assert info.started_at <= info.seen_at
        assert await queue.workers() == [], "it stopped as it should"


EPOCH = datetime.fromtimestamp(0, UTC)


class SetClock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


def _info(id: str) -> WorkerInfo:
    return WorkerInfo(id, "web-1", 42, "1.0", ("a",), (), 5, 2, EPOCH, EPOCH, name="web-1:42")


def test_what_is_not_seen_vanishes_and_is_forgotten_after_a_day(database_url: str) -> None:
    with Queue(database_url) as real:
        real.install()
        clock = SetClock(real.clock())
    with Queue(database_url, clock=clock, upkeep_every=None) as queue:
        database = queue.database
        database.run(database.engine.workers.worker_seen(_info("one")))
        clock.now += SEEN_EVERY
        database.run(database.engine.workers.worker_seen(_info("two")))
        assert [w.state for w in queue.workers()] == ["running", "running"]
        assert queue.workers()[0].seen_at == clock.now, "the database's time"
        clock.now += VANISHED_AFTER - SEEN_EVERY / 2
        assert {w.id: w.state for w in queue.workers()} == {"two": "running", "one": "vanished"}
        database.run(database.engine.workers.worker_seen(_info("one")))
        assert {w.state for w in queue.workers()} == {"running"}, "it was only cut off"
        database.run(database.engine.workers.worker_gone("two"))
        assert [w.id for w in queue.workers()] == ["one"]
        clock.now += timedelta(days=1)
        queue.upkeep()
        assert [w.state for w in queue.workers()] == ["vanished"]
        clock.now += timedelta(seconds=1)
        queue.upkeep()
        assert queue.workers() == []


@run_async
async def test_two_workers_of_one_client_have_a_row_each(database_url: str) -> None:
    async with AsyncQueue(database_url, worker="same name") as queue:
        await queue.install()
        found: list[list[WorkerInfo]] = []

        async def inner() -> None:
            other = Worker(queue, queues=["other"])

            @other.default_handler
            async def handle(payload: int) -> None:
                while len(await queue.workers()) < 2:
                    pass
                found.append(await queue.workers())

            await queue.publish(1, queue="other")
            await other.serve(max_messages=1)

        worker = Worker(queue)

        @worker.handler("outer")
        async def outer(payload: int) -> None:
            await inner()

        await queue.publish(1, kind="outer")
        await worker.serve(max_messages=1)
        (infos,) = found
        assert {info.name for info in infos} == {"same name"}
        assert sorted(info.kinds for info in infos) == [(), ("outer",)]
        assert await queue.workers() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.repeats("takes more than half a minute: vanishing itself is tested with a clock")
def test_a_killed_and_a_frozen_worker_vanish(number: signal.Signals, database_url: str) -> None:
    with Queue(database_url) as queue:
        queue.install()
        code = (
            "import sys; from laneway import Queue, Worker\n"
            "worker = Worker(Queue(sys.argv[1]))\n"
            "worker.default_handler(lambda payload: None)\n"
            "worker.run()\n"
        )
        process = subprocess.Popen([sys.executable, "-c", code, database_url])
        try:
            end = time.monotonic() + 30
            while not queue.workers():
                assert time.monotonic() < end
                time.sleep(0.1)
            assert queue.workers()[0].pid == process.pid
            process.send_signal(number)
            end = time.monotonic() + 60
            while queue.workers()[0].state != "vanished":
                assert time.monotonic() < end
                time.sleep(0.5)
            if number == signal.SIGSTOP:
                process.send_signal(signal.SIGCONT)
                while queue.workers()[0].state != "running":
                    assert time.monotonic() < end + 30
                    time.sleep(0.2)
                process.terminate()
                process.wait(30)
                assert queue.workers() == []
        finally:
            process.kill()
            process.wait()
