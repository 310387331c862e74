"""What a worker consists of, without any connection: it can be sent to another process."""

from dataclasses import dataclass

from penstock.client.async_queue import AsyncQueue
from penstock.client.options import Address, Options

from .handlers import Handlers
from .hooks import Hooks
from .options import WorkerOptions
from .performing import Middleware


@dataclass(frozen=True, slots=True)
class Kit:
    """``given`` are the options of the client that the worker was made with."""

    address: Address
    given: Options
    options: WorkerOptions
    handlers: Handlers
    middleware: tuple[Middleware, ...]
    hooks: Hooks

    def open_client(self) -> AsyncQueue:
        """A client of our own: the given one may belong to another event loop, or to none."""
        address, given = self.address, self.given
        return AsyncQueue(
            address.url,
            queue=given.queue,
            schema=address.schema,
            lease=self.options.lease,
            worker=given.worker,
            max_payload=given.max_payload,
            pool_size=address.pool_size,
            pooler=address.pooler,
            upkeep_every=given.upkeep_every,
            clock=address.clock,
        )
