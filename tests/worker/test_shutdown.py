"""A worker can be stopped at any time, and nothing keeps it from ending then."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from laneway import AsyncQueue, Worker
from laneway.errors import InvalidOption
from laneway.integrations.asgi import lifespan
from laneway.worker.run import loop
from tests.client.worlds import run_async
from tests.worker.test_worker import until


def _url(folder: Path) -> str:
    return f"sqlite:///{folder / 'queue.db'}"


def _slow_to_start(queue: AsyncQueue, said: list[str], seconds: float = 0.3) -> Worker:
    worker = Worker(queue)

    @worker.on_start
    async def start() -> None:
        said.append("start")
        await asyncio.sleep(seconds)
        said.append("started")

    @worker.on_stop
    def stop() -> None:
        said.append("stop")

    @worker.default_handler
    async def handle(payload: int) -> None:
        said.append("handled")

    return worker


@run_async
async def test_a_stop_during_the_start_hooks_is_heard(tmp_path: Path) -> None:
    async with AsyncQueue(_url(tmp_path)) as queue:
        await queue.install()
        await queue.publish(1)
        said: list[str] = []
        worker = _slow_to_start(queue, said)
        serving = asyncio.create_task(worker.serve())
        await until(lambda: "start" in said)
        worker.stop()
        await asyncio.wait_for(serving, 10)
        assert said == ["start", "started", "stop"], "and nothing was claimed"


@run_async
async def test_the_stop_hooks_are_called_if_the_run_is_cancelled(tmp_path: Path) -> None:
    async with AsyncQueue(_url(tmp_path)) as queue:
        await queue.install()
        await queue.publish(1)
        said: list[str] = []
        serving = asyncio.create_task(_slow_to_start(queue, said, 0).serve())
        await until(lambda: "handled" in said)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert said[-1] == "stop"


def test_if_a_part_of_it_fails_handlers_end_as_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    async def fail(client: AsyncQueue, upkeep: object) -> None:
        await until(lambda: len(begun) == 2)
        raise RuntimeError("out of order")

    monkeypatch.setattr(loop, "run_upkeep", fail)

    @run_async
    async def check() -> None:
        async with AsyncQueue(_url(tmp_path)) as queue:
            await queue.install()
            worker = Worker(queue, concurrency=2)

            @worker.default_handler
            async def handle(payload: int) -> None:
                begun.append(payload)
                await asyncio.sleep(0.5)

            await queue.publish_many(range(3))
            with pytest.raises(RuntimeError, match="out of order"):
                await worker.serve()
            (stats,) = await queue.stats()
            assert (stats.waiting, stats.leased) == (1, 0)

    check()


@run_async
async def test_a_worker_that_is_starting_cannot_be_started_again(tmp_path: Path) -> None:
    async with AsyncQueue(_url(tmp_path)) as queue:
        await queue.install()
        worker = _slow_to_start(queue, [])
        first = asyncio.create_task(worker.serve())
        await asyncio.sleep(0)
        with pytest.raises(InvalidOption, match="running already"):
            await worker.serve()
        worker.stop()
        await asyncio.wait_for(first, 10)
        await worker.serve(until_empty=True)


@run_async
async def test_an_app_that_stops_right_after_its_start_ends(tmp_path: Path) -> None:
    queue = AsyncQueue(_url(tmp_path))
    worker = _slow_to_start(queue, [], 0)

    async def live() -> None:
        async with lifespan(queue, worker, install=True)(None):
            pass

    await asyncio.wait_for(live(), 15)


@contextmanager
def _starting(folder: Path, seconds: float) -> Iterator["subprocess.Popen[str]"]:
    """A worker in a process of its own, in its start hook for so many seconds."""
    command = [sys.executable, "-m", "tests.worker.slow_start", _url(folder), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "starting\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_signal_during_the_start_hooks_ends_it_after_them(tmp_path: Path) -> None:
    with _starting(tmp_path, 1) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_second_signal_does_not_wait_for_the_start_hooks(tmp_path: Path) -> None:
    with _starting(tmp_path, 60) as process:
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
