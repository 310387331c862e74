"""PostgreSQL by psycopg. Values are put into the text by the driver, on this side: COPY takes no
parameters, and a partition of Spark is a complete query that any task can run."""

from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from laneway.drivers.errors import translated
from laneway.drivers.postgresql import IN_STANDBY
from laneway.engines.postgresql.base import quoted, render
from laneway.errors import LanewayError

from .store import Store, StoreAddress, Syntax, opened

# The lake imports this module for any database: psycopg may not be installed.
if TYPE_CHECKING:
    import psycopg

_TIMEOUT = 30  # seconds for the connection itself
_MODULES = {"psycopg", "adbc_driver_manager"}


class PostgresqlStore(Store):
    syntax = Syntax(
        render=render,
        table=lambda schema, name: f"{quoted(schema)}.{quoted(name)}",
        quoted=quoted,
        placeholder=lambda name: f"%({name})s",
        moment=lambda at: at,
        percent=True,
    )
    connection: "psycopg.Connection[Any]"

    def text(self, name: str, **values: Any) -> str:
        """The complete statement, values included."""
        from psycopg import ClientCursor

        text, used = self._filled(name, values)
        return ClientCursor(self.connection).mogrify(text.encode(), used)

    def copy(self, name: str, **values: Any) -> "AbstractContextManager[psycopg.Copy]":
        """Runs a COPY, in a transaction."""
        return self.connection.cursor().copy(self.text(name, **values).encode())

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()

    def lives(self) -> bool:
        """Whether the server still has this connection: one that ended it, or went away, has said
        so by now. One to a standby is not worth keeping: the next may lead to the primary."""
        from psycopg import OperationalError

        if self.connection.closed or self.takes_no_writes(self.connection):
            return False
        try:
            self.connection.execute("select")
        except OperationalError:
            return False
        return True

    def _execute(self, text: str, values: dict[str, Any], *, streamed: bool = False) -> Any:
        return self.connection.execute(text.encode(), values)

    @classmethod
    def connect(cls, address: StoreAddress) -> "psycopg.Connection[Any]":
        import psycopg

        return psycopg.connect(
            address.url,
            autocommit=True,
            connect_timeout=_TIMEOUT,
            client_encoding="utf8",
            cursor_factory=psycopg.ClientCursor,
        )

    @classmethod
    def takes_no_writes(cls, connection: "psycopg.Connection[Any]") -> bool:
        return not connection.closed and connection.info.parameter_status(IN_STANDBY) == "on"

    @classmethod
    def error(cls, error: Exception, address: StoreAddress) -> LanewayError | None:
        modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
        if not isinstance(error, OSError) and not modules & _MODULES:
            return None
        return translated(error, address.url)


open_postgresql = partial(opened, PostgresqlStore)
"""A store that is known to be PostgreSQL, by address and package."""


STORE = PostgresqlStore
