"""The one-method protocol for connections that Laneway does not know."""

from collections.abc import Sequence
from typing import Any, Protocol

from laneway.plan import Row


class Executor(Protocol):
    """Runs one statement and answers its rows: with ``$1`` placeholders for PostgreSQL, with ``%s``
    for MySQL, where a statement without rows answers one row, the cursor's ``lastrowid``.

    It must not commit: the transaction is its owner's.

    >>> class MyConnection:
    ...     def execute(self, sql, params):
    ...         return self.driver.query(sql, list(params))
    """

    def execute(self, sql: str, params: Sequence[Any], /) -> Sequence[Row]: ...


class AsyncExecutor(Protocol):
    """The same for asyncio."""

    async def execute(self, sql: str, params: Sequence[Any], /) -> Sequence[Row]: ...
