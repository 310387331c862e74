"""Upkeep is periodic maintenance: every worker does it and fires due schedules, one at a time among
all."""

import asyncio
import logging
import random

from laneway.client.aio.queue import AsyncQueue
from laneway.errors import LanewayError

_log = logging.getLogger("laneway.worker")

_SHORTEST_WAIT = 0.02


async def run_upkeep(client: AsyncQueue) -> None:
    """Runs until it is cancelled."""
    every = client._core.options.upkeep_every
    seconds = 1.0 if every is None else every.total_seconds()
    while True:
        wait = seconds * random.uniform(0.8, 1)
        try:
            if every is not None:
                await client.upkeep()
            look_again = (await client.fire_schedules()).look_again
        except LanewayError as error:
            # It is tried again, here or by another process.
            _log.warning("upkeep failed: %s", error)
        else:
            if look_again is not None:
                wait = min(wait, max(look_again.total_seconds(), _SHORTEST_WAIT))
        await asyncio.sleep(wait)
