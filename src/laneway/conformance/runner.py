"""Runs the cases against one database, in one world."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Self

from laneway.client.aio.queue import AsyncQueue
from laneway.client.sync.queue import Queue

from . import caller_transactions as callers
from .registry import Case, CaseSkipped, all_cases
from .sync_adapter import awaiting
from .world import World


class Client(NamedTuple):
    """A world, the scheme that asks for the driver, and the caller's own connection on it (None if
    nobody but the client can have one)."""

    world: type[Queue] | type[AsyncQueue]
    scheme: str
    caller: Callable[[str], Awaitable[callers.Caller]] | None


CLIENTS = {
    "sync psycopg": Client(Queue, "postgresql", callers.psycopg_sync),
    "async psycopg": Client(AsyncQueue, "postgresql", callers.psycopg_async),
    "asyncpg": Client(AsyncQueue, "postgresql+asyncpg", callers.asyncpg),
    "sync sqlite3": Client(Queue, "sqlite", callers.sqlite3_sync),
    "async sqlite3": Client(AsyncQueue, "sqlite", callers.aiosqlite),
    "sync memory": Client(Queue, "sqlite", None),
    "async memory": Client(AsyncQueue, "sqlite", None),
    "sync pymysql": Client(Queue, "mysql", callers.pymysql),
    "asyncmy": Client(AsyncQueue, "mysql", callers.asyncmy),
}

_numbers = count(1)

# What they look at is exact while little is there: in a schema of their own, no other case's.
_LOOKS = {"stats", "messages", "message", "channels", "minutes", "totals"}


@dataclass(frozen=True, slots=True)
class Target:
    """A scratch database, and the client to prove, one of CLIENTS. The schema is installed and
    left full."""

    url: str
    client: str = "async psycopg"
    schema: str = "laneway conformance"


class Harness:
    """One event loop and one pool of connections for all cases of a target.

    Every client of a case is a client of its own, with its own memory, but they share their
    connections: a new session has to plan all functions anew, which costs more than a case.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._loop = asyncio.Runner()
        self._schema = target.schema
        self._first = self._new()
        self._loop.run(self._wrapped(self._first).install())
        self._schema = f"{target.schema} looks"
        self._loop.run(self._open().install())

    def run(self, case: Case) -> None:
        """Each case has a queue and a clock of its own, and leaves its messages behind.

        Raises AssertionError if the promise is broken, CaseSkipped if it cannot be shown.
        """
        name = f"{case.group} {next(_numbers)}"
        self._schema = f"{self.target.schema} looks" if case.group in _LOOKS else self.target.schema
        self._loop.run(self._run(case, name))

    def close(self) -> None:
        self._loop.run(self._wrapped(self._first).close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _run(self, case: Case, name: str) -> None:
        lacks = self._first.database.engine.lacks
        await case.body(World(name, self._open, self._caller, lacks))

    def _open(self, **options: Any) -> AsyncQueue:
        """A client with the async interface, whatever it is inside."""
        client = self._new(**options)
        client.database._runner = self._first.database._runner
        return self._wrapped(client)

    def _new(self, **options: Any) -> Any:
        client = CLIENTS[self.target.client]
        _, _, place = self.target.url.partition("://")
        url = f"{client.scheme}://{place}"
        return client.world(url, schema=self._schema, **options)

    def _wrapped(self, client: Any) -> AsyncQueue:
        return client if isinstance(client, AsyncQueue) else awaiting(client)

    async def _caller(self) -> callers.Caller:
        caller = CLIENTS[self.target.client].caller
        if caller is None:
            raise CaseSkipped("a database in memory has one connection, and it is the client's")
        return await caller(self.target.url)


def conformance(target: Target) -> Iterator[tuple[str, Callable[[], None]]]:
    """Installs the schema, then yields each case's name and what runs it; see Harness.run."""
    with Harness(target) as harness:
        for case in all_cases():
            yield case.name, partial(harness.run, case)
