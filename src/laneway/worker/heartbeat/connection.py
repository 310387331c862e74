"""The heartbeat's connection to the database."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .lease_table import Lease

if TYPE_CHECKING:
    from laneway.client.aio.queue import AsyncQueue
    from laneway.contract import Hold
    from laneway.model import ProgressNote

_log = logging.getLogger("laneway.worker.heartbeat")

CLOSE_TIMEOUT = 0.5
"""Seconds that a broken connection may take to close."""


class HeartbeatConnection:
    """Opened when it is first needed, and again after it was closed."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._client: AsyncQueue | None = None

    @property
    def is_open(self) -> bool:
        return self._client is not None

    async def connect(self) -> None:
        core = self._open()._core
        await core.run(core.engine.schema_version())

    async def hold(
        self, leases: list[Lease], seconds: float, notes: "Sequence[ProgressNote]"
    ) -> "list[Hold]":
        core = self._open()._core
        held = [(lease.id, lease.fence) for lease in leases]
        return await core.run(core.engine.hold(held, timedelta(seconds=seconds), notes))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await client.close()
            except Exception as error:  # expected of a broken connection
                _log.info("closing the connection failed: %s", error)

    def _open(self) -> "AsyncQueue":
        if self._client is None:
            from laneway.client.aio.queue import AsyncQueue

            self._client = AsyncQueue(
                self._settings["url"],
                schema=self._settings["schema"],
                pooler=self._settings["pooler"],
                pool_size=1,
                upkeep_every=None,
                call_timeout=self._settings["call_timeout"],
            )
        return self._client
