"""The one-method protocol for connections that Penstock does not know."""

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.plan import Row


class Executor(Protocol):
    """Runs one PostgreSQL statement with ``$1`` placeholders and answers its rows.

    It must not commit: the transaction is its owner's.

    >>> class MyConnection:
    ...     def execute(self, sql, params):
    ...         return self.driver.query(sql, list(params))
    """

    def execute(self, sql: str, params: Sequence[Any], /) -> Sequence[Row]: ...


class AsyncExecutor(Protocol):
    """The same for asyncio."""

    async def execute(self, sql: str, params: Sequence[Any], /) -> Sequence[Row]: ...
