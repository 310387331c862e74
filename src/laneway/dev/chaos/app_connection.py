"""The application's own connection, for transactions that also publish or complete messages."""

from typing import Any
from urllib.parse import unquote, urlsplit

from .config import RunConfig, sql


class AppConnection:
    """In autocommit mode; transactions begin and end with statements that all databases know."""

    def __init__(self, config: RunConfig) -> None:
        self._engine = config.engine
        self.connection: Any = _connect(config.engine, config.url, config.pooled)

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


def _connect(engine: str, url: str, pooled: bool) -> Any:
    if engine == "postgresql":
        import psycopg

        return psycopg.connect(url, autocommit=True, prepare_threshold=None if pooled else 5)
    if engine == "sqlite":
        import sqlite3

        from laneway.drivers.sqlite.url import read_url

        return sqlite3.connect(read_url(url).path, timeout=20, isolation_level=None)
    import pymysql

    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname, port=parts.port or 3306, user=unquote(parts.username or ""),
        password=unquote(parts.password or ""), database=unquote(parts.path[1:]), autocommit=True,
    )  # fmt: skip
