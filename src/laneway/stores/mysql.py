"""MySQL and MariaDB by PyMySQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import Any

import pymysql
from pymysql.cursors import Cursor, SSCursor

from laneway.drivers.errors import translated
from laneway.drivers.mysql.server import SERVER_READ_ONLY
from laneway.drivers.mysql.url import connect_options, database_of
from laneway.engines.mysql.render import render
from laneway.errors import LanewayError

from .store import Store, StoreAddress, Syntax

_ISOLATION = "set session transaction isolation level read committed"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class MysqlStore(Store):
    syntax = Syntax(
        render=render,
        table=lambda schema, name: quoted(f"{schema}_{name}"),
        quoted=quoted,
        placeholder=lambda name: f"%({name})s",
        moment=lambda at: at.astimezone(UTC).replace(tzinfo=None),
        percent=True,
    )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.begin()
        try:
            yield
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.commit()

    def _execute(self, text: str, values: dict[str, Any], *, streamed: bool = False) -> Any:
        cursor = self.connection.cursor(SSCursor if streamed else Cursor)
        cursor.execute(text, values)
        return cursor

    @classmethod
    def connect(cls, address: StoreAddress) -> Any:
        options = {**connect_options(address.url), "autocommit": True, "init_command": _ISOLATION}
        return pymysql.connect(database=database_of(address.url), **options)

    @classmethod
    def takes_no_writes(cls, connection: Any) -> bool:
        with connection.cursor(Cursor) as cursor:
            cursor.execute(SERVER_READ_ONLY)
            ((read_only,),) = cursor.fetchall()
        return bool(int(read_only))

    @classmethod
    def error(cls, error: Exception, address: StoreAddress) -> LanewayError | None:
        module = type(error).__module__.partition(".")[0]
        if module != "pymysql" and not isinstance(error, OSError):
            return None
        return translated(error, address.url)


STORE = MysqlStore
