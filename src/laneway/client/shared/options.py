"""The options of a client, checked; and what becomes of one after a fork."""

import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote
from weakref import WeakKeyDictionary

from laneway.clock import Clock
from laneway.contract import Engine
from laneway.drivers.choice import driver_of, same_database
from laneway.drivers.database_url import dialect_url
from laneway.drivers.errors import masked
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, shown
from laneway.names import check_name

from .checks import check_lease, check_number, check_switch


class Forkable(Protocol):
    """A process that was forked has connections of its own.

    Two processes on one socket get each other's answers, and a lock that another thread held at the
    fork is never opened in the child. So the clients that came along start anew there; what they
    had belongs to the parent, and is not even closed."""

    def start_anew(self, runner: Any) -> object:
        """Answers what it leaves behind."""
        ...


_openings: "WeakKeyDictionary[Forkable, Callable[[], Any]]" = WeakKeyDictionary()
_left_behind: list[object] = []


def start_anew_after_fork(database: Forkable, open_runner: Callable[[], Any]) -> None:
    _openings[database] = open_runner


def _start_all_anew() -> None:
    for database, open_runner in list(_openings.items()):
        _left_behind.append(database.start_anew(open_runner()))


os.register_at_fork(after_in_child=_start_all_anew)


class WrongWith:
    """``with`` and ``async with`` on the client for which they are not meant; each client overrides
    the two methods that it has."""

    if not TYPE_CHECKING:  # type checkers know better without

        def __enter__(self):
            raise TypeError("AsyncQueue is for `async with`: without asyncio use Queue")

        def __exit__(self, *error): ...

        async def __aenter__(self):
            raise TypeError("Queue is for `with`: in asyncio code use AsyncQueue")

        async def __aexit__(self, *error): ...


# The address for connections that only look.


def looking_url(url: str, pooler: bool, seconds: float) -> str:
    """The server itself ends what takes longer, and PostgreSQL refuses to write. PgBouncer does not
    let such options through; SQLite has no server, and its looks are bounded by themselves."""
    sign = "&" if "?" in url else "?"
    if url.startswith(("mysql", "mariadb")) and "statement_timeout=" not in url:
        return f"{url}{sign}statement_timeout={seconds:g}"
    if not url.startswith("postgres") or pooler or "options=" in url:
        return url
    options = f"-c statement_timeout={int(seconds * 1000)} -c default_transaction_read_only=on"
    return f"{url}{sign}options={quote(options)}"


LEASE = timedelta(seconds=30)
_SHORTEST_CALL = timedelta(milliseconds=100)
UPKEEP_EVERY = timedelta(seconds=1)
MOST_PAYLOAD = 256 * 1024 * 1024  # a batch must stay below what PostgreSQL takes in one value


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """Where a client's database is, for those who open connections of their own to it."""

    url: str = field(repr=False)  # as database_url() has it; it may hold a password
    schema: str
    pool_size: int
    pooler: bool
    clock: Clock | None
    call_timeout: float | None

    @property
    def database(self) -> tuple[object, ...]:
        """Equal for two clients of one schema, whatever their drivers and users."""
        return *same_database(self.url), self.schema

    @property
    def shown(self) -> str:
        """For people: without the password."""
        return f"{masked(self.url)}, schema {self.schema}"

    @property
    def place(self) -> tuple[str, str]:
        """Equal for two clients that connect alike, whatever their drivers."""
        return dialect_url(self.url), self.schema


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
