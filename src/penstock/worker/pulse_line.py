"""The pulse's line to the database."""

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from penstock.errors import DatabaseFailed

from .pulse_table import Lease

if TYPE_CHECKING:
    from penstock.client.async_queue import AsyncQueue

_log = logging.getLogger("penstock.worker.pulse")

CLOSING = 0.5
"""Seconds that a broken connection may take to close."""


class Line:
    """A client of up to ``size`` connections: opened when it is first needed, and anew after it was
    closed."""

    def __init__(self, terms: dict[str, Any], size: int) -> None:
        self._terms = terms
        self._size = size
        self._client: AsyncQueue | None = None

    @property
    def is_open(self) -> bool:
        return self._client is not None

    async def connect(self) -> None:
        if self._client is None:
            core = self._open()._core
            await core.run(core.engine.schema_version())

    async def extend(self, leases: list[Lease], seconds: float) -> list[bool]:
        """Whether they are lost, one by one."""
        from penstock.model import Extension

        core = self._open()._core
        length = timedelta(seconds=seconds)
        items = [Extension(lease.id, lease.fence, length) for lease in leases]
        return [answer.lost for answer in await core.run(core.engine.extend(items))]

    async def holds(self, lease: Lease) -> bool:
        """Whether it is there, as far as we may look. Waits for nobody and notes nothing."""
        core = self._open()._core
        try:
            found = await core.run(core.engine.message(lease.id))
        except DatabaseFailed:  # a role that may work, but not look
            return True
        return found is not None and found.fence == lease.fence

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
                pool_size=self._size,
                upkeep_every=None,
            )
        return self._client
