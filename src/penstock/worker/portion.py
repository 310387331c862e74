"""A portion: messages that somebody else claimed, worked on here until each has its outcome."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from penstock.plan import Row

from .clock import now
from .job import Job
from .kit import Kit
from .watching import Watcher
from .workshop import Workshop


class Handed(NamedTuple):
    """A message whose lease is handed over; ``left`` seconds of it are left by the database's
    clock. The row is one of ``contract.Taken``."""

    row: Row
    claimed_at: datetime
    until: datetime
    left: float


async def work_on(
    kit: Kit, most: int, take: Callable[[], Sequence[Handed]], watchers: Sequence[Watcher]
) -> None:
    """Calls ``take`` (in a thread) once leases can be kept alive here; up to ``most`` messages.

    Start and stop hooks are called around it, as around a worker's run, however it ends. Leases are
    extended until every outcome is written.
    """
    await kit.hooks.call("start")
    try:
        await _work(kit, most, take, watchers)
    finally:
        await kit.hooks.tell("stop")


async def _work(
    kit: Kit, most: int, take: Callable[[], Sequence[Handed]], watchers: Sequence[Watcher]
) -> None:
    async with kit.open_client() as client:
        shop = Workshop(client, kit, most, watchers, _nothing, _nothing)
        shop.pulse.start()
        desk = asyncio.create_task(shop.desk.work())
        try:
            await shop.pulse.until_ready()
            asked = now()
            shop.crew.take([_job(kit, asked, handed) for handed in await asyncio.to_thread(take)])
            await _first(asyncio.create_task(shop.crew.idle()), desk)
            await _first(asyncio.create_task(shop.desk.empty()), desk)
        finally:
            desk.cancel()
            await shop.close()


def _job(kit: Kit, asked: float, handed: Handed) -> Job:
    row, claimed_at, until, left = handed
    return Job(row, claimed_at, until, asked + left, kit.handlers.find(row[4]))


async def _first(wanted: asyncio.Task[None], desk: asyncio.Task[None]) -> None:
    """The desk does not end by itself: if it does, it has failed, and so have we."""
    await asyncio.wait([wanted, desk], return_when="FIRST_COMPLETED")
    if desk.done():
        wanted.cancel()
        desk.result()


def _nothing() -> None:
    pass
