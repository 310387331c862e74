"""The application's own connection: transactions that publish and complete as part of them."""

from typing import Any
from urllib.parse import urlsplit

from penstock import Queue

from .stage import Stage, order, sql, store


class Outside:
    """In autocommit mode; transactions begin and end by statements that all databases know."""

    def __init__(self, stage: Stage, queue: Queue) -> None:
        self._engine = stage.engine
        self._queue = queue
        self._url = stage.url
        self.connection: Any = _connect(stage.engine, stage.url)

    def say(self, text: str) -> None:
        self._queue._core.run(order(text), self.connection)

    def add_effect(self, n: str) -> None:
        self._queue._core.run(store(sql(self._engine, "add_effect"), n), self.connection)

    def renew(self) -> None:
        """After a failure: whatever was open is rolled back by its end."""
        self.close()
        self.connection = _connect(self._engine, self._url)

    def close(self) -> None:
        try:
            self.connection.close()
        except Exception:
            return  # it is broken, which is why it is given up


def _connect(engine: str, url: str) -> Any:
    if engine == "postgresql":
        import psycopg

        return psycopg.connect(url, autocommit=True)
    if engine == "sqlite":
        import sqlite3

        from penstock.drivers.sqlite_place import read_url

        return sqlite3.connect(read_url(url).path, timeout=20, isolation_level=None)
    import pymysql

    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname, port=parts.port or 3306, user=parts.username, autocommit=True,
        password=parts.password or "", database=parts.path[1:],
    )  # fmt: skip
