"""The options of a client, checked.

Which engine a URL asks for. Only that one is imported.
"""

import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module

from laneway.contract import Engine
from laneway.drivers.choice import driver_of
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, shown
from laneway.names import check_name

from .checks import check_lease, check_number, check_switch

LEASE = timedelta(seconds=30)
_SHORTEST_CALL = timedelta(milliseconds=100)
UPKEEP_EVERY = timedelta(seconds=1)
MOST_PAYLOAD = 256 * 1024 * 1024  # a batch must stay below what PostgreSQL takes in one value

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """Where a client's database is, for those who open connections of their own to it."""

    url: str = field(repr=False)  # it may hold a password
    schema: str
    pool_size: int
    pooler: bool
    clock: Clock | None
    call_timeout: float | None


@dataclass(frozen=True, slots=True)
class ClientOptions:
    queue: str
    lease: timedelta
    worker: str
    max_payload: int
    group_commit: bool
    upkeep_every: timedelta | None


def client_options(
    name: str,
    lease: Duration,
    worker: str | None,
    max_payload: int,
    group_commit: bool,
    upkeep_every: Duration | None,
) -> ClientOptions:
    """Checked; without a ``worker`` it gets a name that no other client has."""
    return ClientOptions(
        check_name("queue", name),
        check_lease(lease),
        check_name("worker", default_worker() if worker is None else worker),
        check_number("max_payload", max_payload, 1, MOST_PAYLOAD),
        check_switch("group_commit", group_commit),
        None if upkeep_every is None else check_duration("upkeep_every", upkeep_every),
    )


def check_call_timeout(value: Duration | None) -> float | None:
    """In seconds."""
    if value is None:
        return None
    return check_duration("call_timeout", value, _SHORTEST_CALL).total_seconds()


def default_worker() -> str:
    """A name that tells people where it runs and that no two clients share."""
    return f"{socket.gethostname()[:200]}:{os.getpid()}:{secrets.token_hex(4)}"


# By dialect: package and class.
ENGINES = {
    "postgresql": ("laneway.engines.postgresql", "PostgresqlEngine"),
    "sqlite": ("laneway.engines.sqlite", "SqliteEngine"),
    "mysql": ("laneway.engines.mysql", "MysqlEngine"),
}


def open_engine(url: str, schema: str, clock: Clock | None) -> Engine:
    """The engine for this URL's database."""
    if clock is not None and not callable(clock):
        raise InvalidOption(f"clock is {shown(clock)}: it must be a function that returns the time")
    package, name = ENGINES[driver_of(url).dialect]
    engine: Engine = getattr(import_module(package), name)(schema, clock)
    return engine
