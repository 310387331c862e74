"""The bare table for tasks that go one message at a time, with the library's own group commit.

What is left of the difference is the queue: fairness, fences, limits, keys.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Self

from laneway.client.aio.group_commit import AsyncGroup

from .sides import Bare

_MOST = 1_000
_PUBLISH = Bare.PUBLISH + " returning id"

Run = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
Insert = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class BareMessage:
    id: int
    queue: "BareQueue"

    async def complete(self) -> None:
        await self.queue.complete(self.id)


class BareQueue:
    """As much of AsyncQueue as an exchange needs; each verb has a connection of its own."""

    def __init__(self, url: str, driver: str) -> None:
        self._url = url
        self._connect = _CONNECT[driver]
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._insert, self._take, self._end = [
            await self._connect(self._url, self._open) for _ in range(3)
        ]
        self._publishes = AsyncGroup(self._publish_all, lambda _: 1, _MOST)
        self._completes = AsyncGroup(self._complete_all, lambda _: 1, _MOST)
        self._claims = AsyncGroup(self._claim_all, int, _MOST, before=self._completes.landed)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def publish(self, payload: bytes, *, channel: str) -> int:
        return await self._publishes.call((channel, payload))

    async def claim(self, limit: int) -> list[BareMessage]:
        return await self._claims.call(limit)

    async def complete(self, id: int) -> None:
        await self._completes.call(id)

    async def _publish_all(self, inserts: list[Insert]) -> list[int]:
        channels, payloads = zip(*inserts, strict=True)
        return [row[0] for row in await self._insert(_PUBLISH, list(channels), list(payloads))]

    async def _claim_all(self, limits: list[int]) -> list[list[BareMessage]]:
        rows = iter(await self._take(Bare.CLAIM, sum(limits)))
        return [[BareMessage(row[0], self) for row in islice(rows, limit)] for limit in limits]

    async def _complete_all(self, ids: list[int]) -> list[None]:
        await self._end(Bare.COMPLETE, ids)
        return [None] * len(ids)


async def _psycopg(url: str, closing: AsyncExitStack) -> Run:
    from psycopg import AsyncConnection
    from psycopg.types.array import ListBinaryDumper

    connection = await AsyncConnection.connect(url, autocommit=True)
    closing.push_async_callback(connection.close)
    connection.adapters.register_dumper(list, ListBinaryDumper)

    async def run(statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        cursor = await connection.execute(statement.encode(), values, binary=True)
        return await cursor.fetchall() if cursor.description else []

    return run


async def _asyncpg(url: str, closing: AsyncExitStack) -> Run:
    connection = await import_module("asyncpg").connect(url)
    closing.push_async_callback(connection.close)

    async def run(statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        return await connection.fetch(_numbered(statement), *values)  # type: ignore[no-any-return]

    return run


@cache
def _numbered(statement: str) -> str:
    """With $1, $2 … instead of %s."""
    first, *others = statement.split("%s")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))


_CONNECT: dict[str, Callable[[str, AsyncExitStack], Awaitable[Run]]] = {
    "psycopg": _psycopg,
    "asyncpg": _asyncpg,
}
