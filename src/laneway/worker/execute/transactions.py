"""Transactions for handlers that ask for one: their effects and the completion commit together."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any

from laneway.client.shared.options import ClientAddress
from laneway.contract import Ability
from laneway.drivers.caller.detect import kind_of_class
from laneway.drivers.choice import open_async_runner, open_runner
from laneway.drivers.runner import AsyncRunner, AsyncTransactional, Runner, Transactional
from laneway.errors import InvalidOption
from laneway.worker.handlers import Handler


def check_transactions(handlers: Iterable[Handler], lacks: Mapping[Ability, str]) -> None:
    """Before anything is claimed: a handler that asks for what it cannot get fails each time."""
    why = lacks.get("handlers' transactions")
    for handler in handlers:
        if why is not None and handler.binding.transaction is not None:
            raise InvalidOption(f"handler {handler.name} asks for the worker's transaction: {why}")


class NoTransaction(Exception):
    """It could not begin: the handler has not been called."""


class HandlerTransactions:
    """With pools of their own, so that long transactions do not block the worker's writes.

    Acquire one of the ``slots`` before beginning one: that waits without a timeout, which the pools
    would not.
    """

    def __init__(self, address: ClientAddress, max_connections: int) -> None:
        self._address = address
        self._max_connections = max_connections
        self.slots = asyncio.Semaphore(max_connections)
        self._async_runner: AsyncRunner | None = None
        self._runner: Runner | None = None

    @asynccontextmanager
    async def begin_async(self, wanted: type) -> AsyncIterator[Any]:
        """A connection in a transaction that commits at the end, or rolls back on an exception."""
        address = self._address
        if self._async_runner is None:
            self._async_runner = open_async_runner(
                address.url,
                pool_size=self._max_connections,
                pooler=address.pooler,
                call_timeout=address.call_timeout,
                lends=True,
            )
        if not isinstance(self._async_runner, AsyncTransactional):
            raise InvalidOption("this driver has no transactions for async handlers")
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(self._async_runner.transaction())
            except Exception as error:  # of any driver
                raise NoTransaction(str(error)) from error
            yield _checked(connection, wanted)

    @contextmanager
    def begin(self, wanted: type) -> Iterator[Any]:
        """The same for a handler in a thread."""
        address = self._address
        if self._runner is None:
            self._runner = open_runner(
                address.url,
                pool_size=self._max_connections,
                pooler=address.pooler,
                call_timeout=address.call_timeout,
                lends=True,
            )
        if not isinstance(self._runner, Transactional):
            raise InvalidOption("this driver has no transactions for handlers in threads")
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self._runner.transaction())
            except Exception as error:  # of any driver
                raise NoTransaction(str(error)) from error
            yield _checked(connection, wanted)

    async def close(self) -> None:
        if self._async_runner is not None:
            await self._async_runner.close()
        if self._runner is not None:
            self._runner.close()


def _checked(connection: Any, wanted: type) -> Any:
    if kind_of_class(type(connection)) != kind_of_class(wanted):
        raise InvalidOption(
            f"the handler asks for a {wanted.__module__}.{wanted.__qualname__}, but the "
            f"worker's URL opens a {type(connection).__module__}.{type(connection).__qualname__}"
        )
    return connection
