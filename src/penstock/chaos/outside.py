"""The application's own connection: transactions that publish and complete as part of them."""

from typing import Any
from urllib.parse import unquote, urlsplit

from .stage import Stage, sql


class Outside:
    """In autocommit mode; transactions begin and end by statements that all databases know."""

    def __init__(self, stage: Stage) -> None:
        self._engine = stage.engine
        self.connection: Any = _connect(stage.engine, stage.url, stage.pooled)

    def begin(self) -> None:
        # SQLite: a transaction that reads first could not write once another has written.
        self.say("begin immediate" if self._engine == "sqlite" else "begin")

    def say(self, text: str, *values: object) -> None:
        cursor = self.connection.cursor()
        cursor.execute(text, values)
        cursor.close()

    def add_effect(self, n: str) -> None:
        mark = "?" if self._engine == "sqlite" else "%s"
        self.say(sql(self._engine, "add_effect").replace("$1", mark), n)

    def close(self) -> None:
        try:
            self.connection.close()
        except Exception:
            return  # it is broken, which is why it is given up


def _connect(engine: str, url: str, pooled: bool) -> Any:
    if engine == "postgresql":
        import psycopg

        return psycopg.connect(url, autocommit=True, prepare_threshold=None if pooled else 5)
    if engine == "sqlite":
        import sqlite3

        from penstock.drivers.sqlite_place import read_url

        return sqlite3.connect(read_url(url).path, timeout=20, isolation_level=None)
    import pymysql

    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname, port=parts.port or 3306, user=unquote(parts.username or ""),
        password=unquote(parts.password or ""), database=unquote(parts.path[1:]), autocommit=True,
    )  # fmt: skip
