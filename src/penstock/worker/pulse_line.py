"""The pulse's line to the database."""

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .pulse_table import Lease

if TYPE_CHECKING:
    from penstock.client.async_queue import AsyncQueue
    from penstock.contract import Hold

_log = logging.getLogger("penstock.worker.pulse")

CLOSING = 0.5
"""Seconds that a broken connection may take to close."""


class Line:
    """One connection: opened when it is first needed, and anew after it was closed."""

    def __init__(self, terms: dict[str, Any]) -> None:
        self._terms = terms
        self._client: AsyncQueue | None = None

    @property
    def is_open(self) -> bool:
        return self._client is not None

    async def connect(self) -> None:
        core = self._open()._core
        await core.run(core.engine.schema_version())

    async def hold(self, leases: list[Lease], seconds: float) -> "list[Hold]":
        core = self._open()._core
        held = [(lease.id, lease.fence) for lease in leases]
        return await core.run(core.engine.hold(held, timedelta(seconds=seconds)))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                async with asyncio.timeout(CLOSING):
                    await client.close()
            except Exception as error:  # a broken connection may not close well
                _log.info("the connection did not close well: %s", error)

    def _open(self) -> "AsyncQueue":
        if self._client is None:
            from penstock.client.async_queue import AsyncQueue

            self._client = AsyncQueue(
                self._terms["url"],
                schema=self._terms["schema"],
                pooler=self._terms["pooler"],
                pool_size=1,
                upkeep_every=None,
            )
        return self._client
