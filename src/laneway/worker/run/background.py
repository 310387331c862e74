"""What a worker does beside its messages: upkeep, and its row in the registry."""

import asyncio
import logging
import os
import random
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import laneway
from laneway.client.aio.database import AsyncDatabase
from laneway.client.aio.queue import AsyncQueue
from laneway.errors import LanewayError
from laneway.model import HeldLease
from laneway.operations import SEEN_EVERY, WorkerInfo
from laneway.worker.definition import WorkerDefinition

# Upkeep is periodic maintenance: every worker does it and fires due schedules, one at a time among
# all.

_log = logging.getLogger("laneway.worker")

_SHORTEST_WAIT = 0.02


async def run_upkeep(client: AsyncQueue, upkeep: Callable[[], Awaitable[None]]) -> None:
    """Runs until it is cancelled; ``upkeep`` as often as the client's options say."""
    every = client.database.options.upkeep_every
    seconds = 1.0 if every is None else every.total_seconds()
    while True:
        wait = seconds * random.uniform(0.8, 1)
        try:
            if every is not None:
                await upkeep()
            look_again = (await client.fire_schedules()).look_again
        except LanewayError as error:
            # It is tried again, here or by another process.
            _log.warning("upkeep failed: %s", error)
        else:
            if look_again is not None:
                wait = min(wait, max(look_again.total_seconds(), _SHORTEST_WAIT))
        await asyncio.sleep(wait)


# The worker's row in the registry: written at the start and every 10 seconds, removed at the end.
#
# The answer names the leases whose handlers are to stop. It is written from the event loop, on
# purpose: a worker whose loop is blocked, or whose process is stopped, must not look alive.

# The database's clock counts: it fills in the times.
_FILLED_IN = datetime.fromtimestamp(0, UTC)


class Registration:
    """``used`` counts the handlers that run, ``cancel`` is called with the leases to cancel."""

    def __init__(
        self,
        database: AsyncDatabase,
        definition: WorkerDefinition,
        used: Callable[[], int],
        stopping: asyncio.Event,
        cancel: Callable[[list[HeldLease]], None],
    ) -> None:
        self._database = database
        self._used = used
        self._stopping = stopping
        self._cancel = cancel
        self._ended = asyncio.Event()
        options, handlers = definition.options, definition.handlers
        self._info = WorkerInfo(
            secrets.token_hex(8),
            socket.gethostname()[:200],
            os.getpid(),
            laneway.__version__,
            options.queues,
            () if handlers.has_default else tuple(handlers.kinds()),
            options.concurrency,
            0,
            _FILLED_IN,
            _FILLED_IN,
            name=database.options.worker,
        )

    @property
    def id(self) -> str:
        return self._info.id

    async def work(self) -> None:
        """Runs until ``close`` is called."""
        while not self._ended.is_set():
            try:
                await self._say()
            except LanewayError as error:
                _log.warning("the worker could not say that it is alive: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(SEEN_EVERY.total_seconds()):
                    await self._ended.wait()

    async def _say(self) -> None:
        state = "stopping" if self._stopping.is_set() else "running"
        info = replace(self._info, used=self._used(), state=state)  # type: ignore[arg-type]
        if held := await self._database.run(self._database.engine.workers.worker_seen(info)):
            self._cancel(held)

    async def close(self, working: asyncio.Task[None]) -> None:
        """Removes the row, after what is under way: it must not come back."""
        self._ended.set()
        await asyncio.wait([working])
        try:
            await self._database.run(self._database.engine.workers.worker_gone(self._info.id))
        except LanewayError as error:
            _log.info("the worker's row could not be removed: %s", error)
