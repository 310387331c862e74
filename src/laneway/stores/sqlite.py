"""SQLite by Python's own driver."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from laneway.drivers.sqlite.runner import translated
from laneway.drivers.sqlite.url import connect, read_url
from laneway.drivers.sqlite.write_queue import BUSY_TIMEOUT, retry_while_busy
from laneway.engines.mysql.render import render
from laneway.errors import LanewayError

from .store import Store, StoreAddress, Syntax, micros


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class SqliteStore(Store):
    # Names are in backticks, as on MySQL, so that both can share statements; SQLite takes them.
    syntax = Syntax(
        render=render,
        table=lambda schema, name: quoted(f"{schema}_{name}"),
        quoted=quoted,
        placeholder=lambda name: f":{name}",
        moment=micros,
        percent=False,
    )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Takes the write lock at once, and waits for it."""
        retry_while_busy(lambda: self.connection.execute("begin immediate"))
        try:
            yield
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.commit()

    def _execute(self, text: str, values: dict[str, Any], *, streamed: bool = False) -> Any:
        if self.connection.in_transaction:
            return self.connection.execute(text, values)
        return retry_while_busy(lambda: self.connection.execute(text, values))

    @classmethod
    def connect(cls, address: StoreAddress) -> sqlite3.Connection:
        return connect(read_url(address.url))

    @classmethod
    def error(cls, error: Exception, address: StoreAddress) -> LanewayError | None:
        if not isinstance(error, sqlite3.Error | OSError):
            return None
        return translated(error, read_url(address.url).path, BUSY_TIMEOUT)


STORE = SqliteStore
