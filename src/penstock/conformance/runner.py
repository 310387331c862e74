"""Runs the cases against one database, in one world."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Literal

from penstock.client.async_queue import AsyncQueue
from penstock.client.sync_queue import Queue

from . import callers
from .awaiting import awaiting
from .registry import Case, all_cases
from .world import World

Client = Literal["sync psycopg", "async psycopg", "asyncpg"]

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Target:
    """A scratch database, and the client to prove. The schema is installed and left full."""

    url: str
    client: Client = "async psycopg"
    schema: str = "penstock conformance"

    def open(self, **options: object) -> AsyncQueue:
        """A client with the async interface, whatever it is inside."""
        if self.client == "sync psycopg":
            return awaiting(Queue(self.url, schema=self.schema, **options))  # type: ignore[arg-type]
        url = self.url
        if self.client == "asyncpg":
            url = url.replace("postgresql://", "postgresql+asyncpg://")
        return AsyncQueue(url, schema=self.schema, **options)  # type: ignore[arg-type]

    async def caller(self) -> callers.Caller:
        if self.client == "sync psycopg":
            return await callers.psycopg_sync(self.url)
        if self.client == "asyncpg":
            return await callers.asyncpg(self.url)
        return await callers.psycopg_async(self.url)


def conformance(target: Target) -> Iterator[tuple[str, Callable[[], None]]]:
    """Installs the schema, then yields each case's name and what runs it.

    A run raises AssertionError if the promise is broken, and CaseSkipped if it cannot be shown.
    """
    install(target)
    for case in all_cases():
        yield case.name, partial(run_case, target, case)


def install(target: Target) -> None:
    async def main() -> None:
        queue = target.open()
        await queue.install()
        await queue.close()

    asyncio.run(main())


def run_case(target: Target, case: Case) -> None:
    """Each case has a queue and a clock of its own, and leaves its messages behind."""

    async def main() -> None:
        world = World(f"{case.group} {next(_numbers)}", target.open, target.caller)
        try:
            await case.body(world)
        finally:
            await world.close()

    asyncio.run(main())
