"""The options of a client, checked."""

import os
import secrets
import socket
from dataclasses import dataclass, field
from datetime import timedelta

from penstock.names import check_name
from penstock.payload import MAX_PAYLOAD

from .checks import check_lease, check_length, check_number
from .engine_choice import Clock

LEASE = timedelta(seconds=30)
UPKEEP_EVERY = timedelta(seconds=1)
MOST_PAYLOAD = 256 * 1024 * 1024  # a batch must stay below what PostgreSQL takes in one value


@dataclass(frozen=True, slots=True)
class Address:
    """Where a client's database is, for those who open connections of their own to it."""

    url: str = field(repr=False)  # it may hold a password
    schema: str
    pool_size: int
    pooler: bool
    clock: Clock | None


@dataclass(frozen=True, slots=True)
class Options:
    queue: str = "default"
    lease: timedelta = LEASE
    worker: str | None = None
    max_payload: int = MAX_PAYLOAD
    coalesce: bool = True
    upkeep_every: timedelta | None = UPKEEP_EVERY

    def __post_init__(self) -> None:
        worker = default_worker() if self.worker is None else self.worker
        checked = {
            "queue": check_name("queue", self.queue),
            "lease": check_lease(self.lease),
            "worker": check_name("worker", worker),
            "max_payload": check_number("max_payload", self.max_payload, 1, MOST_PAYLOAD),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.upkeep_every is not None:
            check_length("upkeep_every", self.upkeep_every)


def default_worker() -> str:
    """A name that tells people where it runs and that no two clients share."""
    return f"{socket.gethostname()[:200]}:{os.getpid()}:{secrets.token_hex(4)}"
