"""Messages that another process claimed, processed here until each has its outcome."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from laneway.plan import Row
from laneway.worker.clock import now
from laneway.worker.definition import WorkerDefinition
from laneway.worker.job import Job
from laneway.worker.telemetry import process_wide
from laneway.worker.telemetry.observer import Observer

from .runtime import Runtime


class Preclaimed(NamedTuple):
    """A message whose lease is handed over; ``left`` seconds of it are left by the database's
    clock. The row is one of ``contract.Taken``."""

    row: Row
    claimed_at: datetime
    until: datetime
    left: float


async def run_preclaimed(
    definition: WorkerDefinition,
    max_jobs: int,
    take: Callable[[], Sequence[Preclaimed]],
    observers: Sequence[Observer],
) -> None:
    """Calls ``take`` (in a thread) once leases can be extended here; up to ``max_jobs`` messages.

    Start and stop hooks are called around it, as around a worker's run, however it ends. Leases are
    extended until every outcome is written.
    """
    await definition.hooks.call("start")
    try:
        await _run(definition, max_jobs, take, observers)
    finally:
        await definition.hooks.call_safely("stop")


async def _run(
    definition: WorkerDefinition,
    max_jobs: int,
    take: Callable[[], Sequence[Preclaimed]],
    observers: Sequence[Observer],
) -> None:
    async with definition.open_client() as client:
        everyone = (*process_wide.observers, *observers)
        runtime = Runtime(client, definition, max_jobs, everyone, _nothing, _nothing)
        runtime.heartbeat.start()
        writing = asyncio.create_task(runtime.settler.work())
        try:
            await runtime.heartbeat.until_ready()
            asked = now()
            taken = await asyncio.to_thread(take)
            runtime.pool.add([_job(definition, asked, one) for one in taken])
            await _wait_for(asyncio.create_task(runtime.pool.idle()), writing)
            await _wait_for(asyncio.create_task(runtime.settler.empty()), writing)
        finally:
            writing.cancel()
            await runtime.close()


def _job(definition: WorkerDefinition, asked: float, taken: Preclaimed) -> Job:
    row, claimed_at, until, left = taken
    return Job(row, claimed_at, until, asked + left, definition.handlers.find(row[4]))


async def _wait_for(wanted: asyncio.Task[None], writing: asyncio.Task[None]) -> None:
    """The writing does not end by itself: if it does, it has failed, and ends the run."""
    await asyncio.wait([wanted, writing], return_when="FIRST_COMPLETED")
    if writing.done():
        wanted.cancel()
        writing.result()


def _nothing() -> None:
    pass
