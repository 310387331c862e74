"""What defines a worker, without any connection: it can be sent to another process."""

from dataclasses import dataclass

from laneway.client.aio.queue import AsyncQueue
from laneway.client.shared.options import ClientAddress, ClientOptions

from .execute.executor import Middleware
from .handlers import Handlers
from .hooks import Hooks
from .options import WorkerOptions

# Seconds: longer than a wait for a lock that the server ends.
_SHORTEST_CALL_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class WorkerDefinition:
    """``given`` are the options of the client that the worker was created with."""

    address: ClientAddress
    given: ClientOptions
    options: WorkerOptions
    handlers: Handlers
    middleware: tuple[Middleware, ...]
    hooks: Hooks

    def _call_timeout(self) -> float | None:
        """An outcome whose write got no answer is written again before its lease ends."""
        given = self.address.call_timeout
        third = max(self.options.lease.total_seconds() / 3, _SHORTEST_CALL_TIMEOUT)
        return given if given is None else min(given, third)

    def open_client(self) -> AsyncQueue:
        """A new client: the given one may belong to another event loop, or to none."""
        address, given = self.address, self.given
        return AsyncQueue(
            address.url,
            name=given.queue,
            schema=address.schema,
            lease=self.options.lease,
            worker=given.worker,
            max_payload=given.max_payload,
            pool_size=address.pool_size,
            pooler=address.pooler,
            upkeep_every=given.upkeep_every,
            call_timeout=self._call_timeout(),
            clock=address.clock,
        )
