"""The interface inside: a database is an engine and a runner, which runs the engine's plans.

The nouns of a client share one; worker, operator, lake and others reach it as ``queue.database``.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn, TypeVar

from laneway.client.shared.options import ClientOptions
from laneway.contract import BATCH, Engine
from laneway.drivers.caller.aio import run_on
from laneway.drivers.runner import AsyncRunner
from laneway.plan import Plan

from .group_commit import AsyncGroup

_log = logging.getLogger("laneway")

T = TypeVar("T")
Item = TypeVar("Item")

# A call of more than this is a batch already and goes by itself.
MERGED = 100


class AsyncDatabase:
    """Runs plans; merges small calls of the same verb that are made at the same time."""

    def __init__(self, engine: Engine, runner: AsyncRunner, options: ClientOptions) -> None:
        self.engine = engine
        self.options = options
        self._runner = runner
        self._groups: dict[object, AsyncGroup[Any, Any]] = {}
        self.at_close: set[Callable[[], Awaitable[None]]] = set()
        """What was opened beside the runner's connections, and is closed with them."""
        self.end_bell: object = None
        self._closed = False

    def __reduce__(self) -> NoReturn:
        """Of the client and of everything that came from it: its messages, channels and workers."""
        raise TypeError(
            "an AsyncQueue holds connections and cannot be copied or sent to another process: send "
            "its URL, and open one there"
        )

    def reopen(self) -> None:
        """Somebody says that it is used again, and closes it again."""
        self._closed = False

    def _warn_if_closed(self) -> None:
        """It works, on new connections, which nobody closes."""
        if self._closed:
            self._closed = False
            _log.warning(
                "a client was used after close(): it opened new connections, which stay open until "
                "it is closed again"
            )

    async def run(self, plan: Plan[T], connection: object = None, *, atomic: bool = False) -> T:
        """On a connection of our own, or in the transaction of the caller's ``connection``."""
        if connection is not None:
            return await run_on(connection, self.engine.dialect, plan, several=atomic)
        self._warn_if_closed()
        return await self._runner.run(plan, atomic=atomic or self.engine.atomic)

    async def run_items(
        self,
        verb: Callable[[Sequence[Item]], Plan[list[T]]],
        items: Sequence[Item],
        connection: object = None,
        *,
        waits: bool = False,
    ) -> list[T]:
        """A verb that answers item by item. Those that may wait for another transaction
        (``waits``) share no round trip with others."""
        if not items:
            return []
        if connection is not None or len(items) > MERGED or not self.options.group_commit:
            return await self.run(verb(items), connection, atomic=len(items) > BATCH)

        async def flush(parts: list[Sequence[Item]]) -> list[list[T]]:
            merged = [item for part in parts for item in part]
            return _split(await self.run(verb(merged)), parts)

        key = (verb.__name__, "waits") if waits else verb.__name__
        return await self.merge(key, flush, len, items)  # type: ignore[no-any-return]

    async def merge(
        self,
        key: object,
        flush: Callable[[list[Any]], Awaitable[list[Any]]],
        size: Callable[[Any], int],
        part: Any,
        undo: Callable[[Any], Awaitable[None]] | None = None,
        after: object = None,
    ) -> Any:
        """The answer to ``part``, from a round trip shared with the calls of the same ``key``.

        Those whom a round trip of ``after`` is about to answer can still join.
        """
        group = self._groups.get(key)
        if group is None:

            async def before() -> None:
                if (other := self._groups.get(after)) is not None:
                    await other.landed()

            group = self._groups.setdefault(key, AsyncGroup(flush, size, BATCH, undo, before))
        return await group.call(part)

    def start_anew(self, runner: AsyncRunner) -> object:
        left, self._runner, self._groups = (self._runner, self._groups), runner, {}
        self.end_bell = None
        return left

    async def close(self) -> None:
        for close in list(self.at_close):
            await close()
        for group in list(self._groups.values()):
            await group.drain()
        await self._runner.close()
        self._closed = True


def _split(answers: list[T], parts: Sequence[Sequence[object]]) -> list[list[T]]:
    split, start = [], 0
    for part in parts:
        split.append(answers[start : start + len(part)])
        start += len(part)
    return split
