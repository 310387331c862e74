"""What time brings, done by every worker, one at a time: upkeep, and the schedules that are due."""

import asyncio
import logging
import random

from penstock.client.async_queue import AsyncQueue
from penstock.errors import PenstockError

_log = logging.getLogger("penstock.worker")

_SHORTEST = 0.02


async def keep_up(client: AsyncQueue) -> None:
    """Runs until it is cancelled."""
    every = client._core.options.upkeep_every
    seconds = 1.0 if every is None else every.total_seconds()
    while True:
        wait = seconds * random.uniform(0.8, 1)
        try:
            if every is not None:
                await client.upkeep()
            look_again = (await client.fire_schedules()).look_again
        except PenstockError as error:
            # It will be tried again, here or by another process.
            _log.warning("upkeep failed: %s", error)
        else:
            if look_again is not None:
                wait = min(wait, max(look_again.total_seconds(), _SHORTEST))
        await asyncio.sleep(wait)
