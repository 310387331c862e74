"""Which kinds a worker claims: all of them, until it meets one that it has no handler for."""

import logging

from laneway.client.aio.core import AsyncCore
from laneway.errors import LanewayError
from laneway.operations import WorkerInfo
from laneway.worker.handlers import Handlers

_log = logging.getLogger("laneway.worker")

_MOST_WORKERS = 1_000


class KindFilter:
    """A queue that is claimed by kind costs its publishers one more index. So nobody does until
    there is a reason: another worker of the queue handles other kinds, or there is a message that
    this one cannot handle."""

    def __init__(self, handlers: Handlers, core: AsyncCore) -> None:
        self._handled = handlers.claimed_kinds(core.engine.lacks)
        self._core = core
        self.claimed: tuple[str, ...] | None = None
        """What it claims now; None: every kind."""

    @property
    def handled(self) -> tuple[str, ...] | None:
        """What it would claim; None: every kind, because it handles all of them, or because this
        database cannot claim by kind."""
        return self._handled

    def turn_on(self, reason: str) -> None:
        if self._handled is not None and self.claimed is None:
            self.claimed = self._handled
            kinds = ", ".join(self._handled) or "none"
            _log.info("claiming only kinds that have a handler here (%s): %s", kinds, reason)

    async def look_around(self, queues: tuple[str, ...]) -> None:
        """Turns it on if another worker of these queues handles other kinds."""
        if self._handled is None:
            return
        try:
            workers = await self._core.run(self._core.engine.workers(_MOST_WORKERS))
        except LanewayError as error:
            _log.debug("cannot ask which workers there are: %s", error)
            return
        if any(self._differs(worker, queues) for worker in workers):
            self.turn_on("another worker of the queue handles other kinds")

    def _differs(self, worker: WorkerInfo, queues: tuple[str, ...]) -> bool:
        shares = worker.state == "running" and not set(queues).isdisjoint(worker.queues)
        return shares and bool(set(worker.kinds) - set(self._handled or ()))
