"""The application's own connection, for transactions that also publish or complete messages; and
connections that block others: an old snapshot, and locks that all writers wait for.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from .config import RunConfig, sql

WAIT = 20.0  # seconds for SQLite's lock
ANSWER = 6.0  # seconds for an answer: an application has deadlines, too


class AppConnection:
    """In autocommit mode; transactions begin and end with statements that all databases know."""

    def __init__(self, config: RunConfig, wait: float = WAIT) -> None:
        self._engine = config.engine
        self.connection: Any = _connect(config.engine, config.url, config.pooled, wait)

    def begin(self) -> None:
        # SQLite: a transaction that reads first could not write once another has written.
        self.execute("begin immediate" if self._engine == "sqlite" else "begin")

    def execute(self, text: str, *values: object) -> None:
        cursor = self.connection.cursor()
        cursor.execute(text, values)
        cursor.close()

    def add_effect(self, n: str) -> None:
        mark = "?" if self._engine == "sqlite" else "%s"
        self.execute(sql(self._engine, "add_effect").replace("$1", mark), n)

    def close(self) -> None:
        try:
            self.connection.close()
        except Exception:
            return  # it is broken, which is why it is closed


def _connect(engine: str, url: str, pooled: bool, wait: float) -> Any:
    if engine == "postgresql":
        return _postgresql(url, pooled)
    if engine == "sqlite":
        import sqlite3

        from laneway.drivers.sqlite.url import read_url

        return sqlite3.connect(read_url(url).path, timeout=wait, isolation_level=None)
    import pymysql

    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname, port=parts.port or 3306, user=unquote(parts.username or ""),
        password=unquote(parts.password or ""), database=unquote(parts.path[1:]), autocommit=True,
        read_timeout=ANSWER, write_timeout=ANSWER,
    )  # fmt: skip


def _postgresql(url: str, pooled: bool) -> Any:
    """A connection of psycopg, but for its patience with a silent wire."""
    from laneway.drivers.psycopg.connection import BoundedConnection

    connection = BoundedConnection.connect(
        url, autocommit=True, prepare_threshold=None if pooled else 5, connect_timeout=int(ANSWER)
    )
    connection.patience = ANSWER
    return connection


SNAPSHOT = {
    "postgresql": "begin isolation level repeatable read",
    "mariadb": "start transaction with consistent snapshot",
    "sqlite": "begin",
}


LOCK_WAIT = 1.0
"""Seconds that a lock is waited for. Whoever waits here resumes the processes that are stopped, and
one of those may hold it."""


class Blocker:
    """``snapshot``, ``lock`` and ``end_idle`` return the function that releases it."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config

    def snapshot(self) -> Callable[[], None]:
        return self._hold(SNAPSHOT[self._config.engine], sql(self._config.engine, "effects"))

    def lock(self) -> Callable[[], None]:
        begin = [] if self._config.engine == "sqlite" else ["begin"]
        return self._hold(*begin, sql(self._config.engine, "block_writers"))

    def end_idle(self) -> Callable[[], None]:
        """The server ends connections that idle for a moment, as it does after hours elsewhere."""
        self._set("idle_timeout")
        return lambda: self._set("no_idle_timeout")

    def _set(self, name: str) -> None:
        """Each line by itself. If the server is away, nothing changes."""
        with suppress(Exception):
            app = AppConnection(self._config, LOCK_WAIT)
            for line in sql(self._config.engine, name).splitlines():
                app.execute(line)
            app.close()

    def reaches_server(self) -> bool:
        try:
            app = AppConnection(self._config, LOCK_WAIT)
            app.execute(sql(self._config.engine, "effects"))
        except Exception:
            return False
        app.close()
        return True

    def _hold(self, *statements: str) -> Callable[[], None]:
        # Another may hold the lock, or the server may be down: then nothing is blocked.
        app = AppConnection(self._config, LOCK_WAIT)
        with suppress(Exception):
            for statement in statements:
                app.execute(statement)
        return app.close
