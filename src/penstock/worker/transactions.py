"""Transactions for handlers that ask for one: their effects and the completion commit together."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any

from penstock.client.options import Address
from penstock.contract import Ability
from penstock.drivers.choice import open_async_runner, open_runner
from penstock.drivers.given import kind_of_class
from penstock.drivers.runner import AsyncRunner, AsyncTransactional, Runner, Transactional
from penstock.errors import InvalidOption

from .handlers import Handler


def check_transactions(handlers: Iterable[Handler], lacks: Mapping[Ability, str]) -> None:
    """Before anything is claimed: a handler that asks for what it cannot have fails each time."""
    why = lacks.get("handlers' transactions")
    for handler in handlers:
        if why is not None and handler.binding.transaction is not None:
            raise InvalidOption(f"handler {handler.name} asks for the worker's transaction: {why}")


class NoTransaction(Exception):
    """None could be begun: the handler has not been called."""


class Transactions:
    """Pools of their own, so that long transactions do not keep the worker from its writes.

    Whoever begins one holds one of the ``places``: waiting for it takes as long as it takes, while
    the pools would give up.
    """

    def __init__(self, address: Address, most: int) -> None:
        self._address = address
        self._most = most
        self.places = asyncio.Semaphore(most)
        self._async_runner: AsyncRunner | None = None
        self._runner: Runner | None = None

    @asynccontextmanager
    async def begin_async(self, wanted: type) -> AsyncIterator[Any]:
        """A connection in a transaction; it commits at the end, or rolls back if that raises."""
        address = self._address
        if self._async_runner is None:
            self._async_runner = open_async_runner(
                address.url, pool_size=self._most, pooler=address.pooler
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
            self._runner = open_runner(address.url, pool_size=self._most, pooler=address.pooler)
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
            f"the handler asks for a {wanted.__module__}.{wanted.__qualname__}, the worker's URL "
            f"leads to a {type(connection).__module__}.{type(connection).__qualname__}"
        )
    return connection
