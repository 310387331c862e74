"""The pulse: how long it waits for an answer, and how it comes back after its death."""

import asyncio
import errno
import subprocess
from datetime import timedelta
from typing import Any

import pytest

from penstock import Worker
from penstock.worker import pulse
from penstock.worker.pulse_line import CLOSING
from penstock.worker.pulse_process import patience
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, outcomes, until

BUSY = 2.0  # seconds that a busy machine may add


@pytest.fixture
def pulses(monkeypatch: pytest.MonkeyPatch) -> list[pulse.Pulse]:
    """Those that were started."""
    started: list[pulse.Pulse] = []
    start = pulse.Pulse.start

    def noted(self: pulse.Pulse) -> None:
        started.append(self)
        start(self)

    monkeypatch.setattr(pulse.Pulse, "start", noted)
    return started


@pytest.mark.parametrize("lease", [3.0, 4.0, 5.0, 10.0, 60.0, 3600.0])
def test_a_lease_outlives_a_call_that_is_never_answered(lease: float) -> None:
    """Nor the end of its connection; with a third of it left to connect anew."""
    assert patience(lease, connected=True) + CLOSING <= lease * 2 / 3


@pytest.mark.parametrize("lease", [1.0, 4.0, 60.0])
def test_a_new_connection_gets_more_time(lease: float) -> None:
    assert patience(lease, connected=False) >= max(3.0, patience(lease, connected=True))


@run_async
async def test_a_pulse_comes_back_even_if_its_restart_fails(
    place: Place, pulses: list[pulse.Pulse], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client(place, lease=timedelta(seconds=3)) as queue:
        worker = Worker(queue)
        runs = []

        @worker.handler()
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
        process_of(pulses[0]).kill()
        await asyncio.wait_for(serving, 30)
        assert runs == [1]
        assert await outcomes(queue, published.id) == ["completed"]


@run_async
async def test_a_pulse_that_lived_is_replaced_at_once(
    place: Place, pulses: list[pulse.Pulse], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "_LIVED", 0.3)
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.handler()
        async def handle(payload: int) -> None: ...

        serving = asyncio.create_task(worker.serve())
        await until(lambda: bool(pulses) and pulses[0]._process is not None)
        for _ in range(8):
            await asyncio.sleep(0.35)
            await kill_and_wait_for_another(pulses[0])
        worker.stop()
        await asyncio.wait_for(serving, 20)


async def kill_and_wait_for_another(watched: pulse.Pulse) -> None:
    last = process_of(watched)
    last.kill()
    await until(lambda: watched._process not in (last, None), 0.5 + BUSY)


def process_of(watched: pulse.Pulse) -> subprocess.Popen[bytes]:
    assert watched._process is not None
    return watched._process
