"""A database under test by the model: emptied for every example, connections kept."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Protocol

from laneway import Queue

NAME = "model"


class Transaction(Protocol):
    """A connection of the caller's, in a transaction of its own."""

    @property
    def connection(self) -> Any: ...

    def commit(self) -> None: ...

    def close(self) -> None:
        """Rolls back what was not committed, and is done with it: a server that only sees the
        connection end takes its time, and holds the locks meanwhile."""
        ...


class ModelStore(Protocol):
    """What the machine needs beside the client."""

    url: str
    schema: str
    first: Queue
    """Its runner is shared by all clients."""
    open_transactions: bool
    """Whether a transaction that stays open leaves the others alone."""
    in_order_within: float
    """How many seconds late a message may be committed and still start before younger ones."""

    def reset(self) -> None:
        """Nothing is left but the schema."""
        ...

    def begin(self) -> Transaction: ...

    def unread(self, now: datetime) -> int:
        """How much news the next claim could read, where a claim reads news."""
        ...

    def violations(self, published: Iterable[int]) -> list[str]:
        """What is wrong in the tables."""
        ...

    def close(self) -> None: ...


def open_client(store: ModelStore, clock: Callable[[], datetime]) -> Queue:
    """One more client, as another process would have it."""
    options: dict[str, Any] = {"name": NAME, "clock": clock, "upkeep_every": None}
    queue = Queue(store.url, schema=store.schema, group_commit=False, **options)
    queue.database._runner = store.first.database._runner
    return queue
