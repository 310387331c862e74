"""The dashboard's own connections: at most three, whatever the application's client has."""

from laneway.client.aio.queue import AsyncQueue
from laneway.client.shared.options import looking_url
from laneway.client.sync.queue import Queue
from laneway.errors import InvalidOption

READING, ACTING = 2, 1
STATEMENT_SECONDS = 2


class Connections:
    """``reading`` gives up after two seconds and cannot write, where the database has a way to say
    so; ``acting`` is one connection. Both connect when they are first used."""

    def __init__(self, queue: Queue | AsyncQueue, read_only: bool) -> None:
        address = queue._address
        url = address.url
        self.secret = f"{address.url} {address.schema}"
        self._shared = url.startswith("sqlite") and _in_memory(url)
        if self._shared:
            # A database in memory belongs to the client that opened it.
            if not isinstance(queue, Queue):
                raise InvalidOption("a database in memory needs a Queue, not an AsyncQueue")
            self.reading = self.acting = queue
            return

        def client(address_of: str, size: int) -> Queue:
            return Queue(
                address_of,
                name=queue.name,
                schema=address.schema,
                pool_size=size,
                pooler=address.pooler,
                call_timeout=address.call_timeout,
                clock=address.clock,
                upkeep_every=None,
                group_commit=False,
            )

        looking = looking_url(url, address.pooler, STATEMENT_SECONDS)
        self.reading = client(looking, READING)
        self.acting = client(looking if read_only else url, ACTING)

    def close(self) -> None:
        if not self._shared:
            self.reading.close()
            self.acting.close()


def _in_memory(url: str) -> bool:
    from laneway.drivers.sqlite.url import read_url

    return read_url(url).in_memory
