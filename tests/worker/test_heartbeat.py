"""The heartbeat: how long it waits for an answer, and how it comes back after its death."""

import asyncio
import errno
import subprocess
from datetime import timedelta
from typing import Any

import pytest

from laneway import Worker
from laneway.worker.heartbeat import heartbeat
from laneway.worker.heartbeat.process import CLOSE_TIMEOUT, call_timeout
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, outcomes, until

BUSY = 15.0  # seconds that a busy machine may add


@pytest.fixture
def heartbeats(monkeypatch: pytest.MonkeyPatch) -> list[heartbeat.Heartbeat]:
    """Those that were started."""
    started: list[heartbeat.Heartbeat] = []
    start = heartbeat.Heartbeat.start

    def noted(self: heartbeat.Heartbeat) -> None:
        started.append(self)
        start(self)

    monkeypatch.setattr(heartbeat.Heartbeat, "start", noted)
    return started


@pytest.mark.parametrize("lease", [3.0, 4.0, 5.0, 10.0, 60.0, 3600.0])
def test_a_lease_outlives_a_call_that_is_never_answered(lease: float) -> None:
    """Nor the end of its connection; with a third of it left to connect anew."""
    assert call_timeout(lease, connected=True) + CLOSE_TIMEOUT <= lease * 2 / 3


@pytest.mark.parametrize("lease", [1.0, 4.0, 60.0])
def test_a_new_connection_gets_more_time(lease: float) -> None:
    assert call_timeout(lease, connected=False) >= max(3.0, call_timeout(lease, connected=True))


@run_async
async def test_a_heartbeat_comes_back_even_if_its_restart_fails(
    place: Place, heartbeats: list[heartbeat.Heartbeat], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client(place, lease=timedelta(seconds=3)) as queue:
        worker = Worker(queue)
        runs = []

        @worker.default_handler
        async def handle(payload: int) -> None:
            runs.append(payload)
            await asyncio.sleep(5)

        published = await queue.publish(1)
        serving = asyncio.create_task(worker.serve(until_empty=True))
        await until(lambda: bool(runs))
        failures = iter([OSError(errno.EAGAIN, "no process to be had")] * 2)
        start = subprocess.Popen

        def starts(*args: Any, **options: Any) -> Any:
            if failure := next(failures, None):
                raise failure
            return start(*args, **options)

        monkeypatch.setattr(subprocess, "Popen", starts)
        process_of(heartbeats[0]).kill()
        await asyncio.wait_for(serving, 30)
        assert runs == [1]
        assert await outcomes(queue, published.id) == ["completed"]


@run_async
async def test_a_heartbeat_that_lived_is_replaced_at_once(
    place: Place, heartbeats: list[heartbeat.Heartbeat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "_MIN_LIFETIME", 0.3)
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.default_handler
        async def handle(payload: int) -> None: ...

        serving = asyncio.create_task(worker.serve())
        await until(lambda: bool(heartbeats) and heartbeats[0]._process is not None)
        for _ in range(8):
            await asyncio.sleep(0.35)
            await kill_and_wait_for_another(heartbeats[0])
        worker.stop()
        await asyncio.wait_for(serving, 20)


async def kill_and_wait_for_another(beating: heartbeat.Heartbeat) -> None:
    last = process_of(beating)
    last.kill()
    await until(lambda: beating._process not in (last, None), 0.5 + BUSY)


def process_of(beating: heartbeat.Heartbeat) -> subprocess.Popen[bytes]:
    assert beating._process is not None
    return beating._process
