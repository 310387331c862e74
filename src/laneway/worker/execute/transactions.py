"""Transactions for handlers that ask for one: their effects and the completion commit together."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any

from laneway.client.shared.options import ClientAddress
from laneway.contract import Ability
from laneway.drivers.caller.detect import kind_of_class
from laneway.drivers.choice import driver_of, open_async_runner, open_runner, open_sessions
from laneway.drivers.errors import masked
from laneway.errors import InvalidOption
from laneway.worker.handlers import Handler


def check_transactions(handlers: Iterable[Handler], lacks: Mapping[Ability, str], url: str) -> None:
    """Before anything is claimed: a handler that asks for what it cannot get fails each time."""
    why = lacks.get("handlers' transactions")
    for handler in handlers:
        wanted = handler.binding.transaction_type
        if wanted is None:
            continue
        if why is not None:
            raise InvalidOption(f"handler {handler.name} asks for the worker's transaction: {why}")
        there = _there(url, handler.run == "async")
        if kind_of_class(wanted) not in there or wanted.__name__.endswith("scoped_session"):
            raise InvalidOption(
                f"handler {handler.name} asks for a {wanted.__module__}.{wanted.__qualname__}, but "
                f"a worker on {masked(url)} has {' or '.join(there.values())}"
            )


def _there(url: str, is_async: bool) -> dict[str, str]:
    """What a handler may ask for, by its kind; in threads it is psycopg's, also beside asyncpg."""
    if not is_async:
        return {
            "psycopg": "psycopg.Connection",
            "sqlalchemy": "Session or Connection of SQLAlchemy",
        }
    native = ("async psycopg", "psycopg.AsyncConnection")
    if driver_of(url).sync is None:
        native = ("async asyncpg", "asyncpg.Connection")
    return dict([native, ("async sqlalchemy", "AsyncSession or AsyncConnection of SQLAlchemy")])


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
        self._lenders: dict[str, Any] = {}
        self._opening = threading.Lock()  # handlers in threads begin at the same time

    @asynccontextmanager
    async def begin_async(self, wanted: type) -> AsyncIterator[Any]:
        """A connection or session in a transaction that commits at the end, or rolls back on an
        exception."""
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(self._lent_async(wanted))
            except Exception as error:  # of any driver
                raise NoTransaction(str(error)) from error
            yield connection

    @contextmanager
    def begin(self, wanted: type) -> Iterator[Any]:
        """The same for a handler in a thread."""
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self._lent(wanted))
            except Exception as error:  # of any driver
                raise NoTransaction(str(error)) from error
            yield connection

    def _lent_async(self, wanted: type) -> Any:
        if kind_of_class(wanted) == "async sqlalchemy":
            return self._lender("async sessions").transaction(wanted)
        return self._lender("async").transaction()

    def _lent(self, wanted: type) -> Any:
        if kind_of_class(wanted) == "sqlalchemy":
            return self._lender("sessions").transaction(wanted)
        return self._lender("threads").transaction()

    def _lender(self, what: str) -> Any:
        with self._opening:
            if what not in self._lenders:
                self._lenders[what] = self._open(what)
            return self._lenders[what]

    def _open(self, what: str) -> Any:
        address, size = self._address, self._max_connections
        if what.endswith("sessions"):
            return open_sessions(
                address.url, size, address.pooler, is_async=what.startswith("async")
            )
        return (open_async_runner if what == "async" else open_runner)(
            address.url,
            pool_size=size,
            pooler=address.pooler,
            call_timeout=address.call_timeout,
            lends=True,
        )

    async def close(self) -> None:
        for what, lender in self._lenders.items():
            if what.startswith("async"):
                await lender.close()
            else:
                lender.close()
