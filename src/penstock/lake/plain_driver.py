"""How each plain database is connected to, and how its statements take values."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Dialect:
    """``blank`` writes a value's place in a statement. ``cursor`` makes one; a streamed one does
    not hold all rows in memory."""

    name: str
    quote: str
    blank: Callable[[str], str]
    connection: Callable[[str], AbstractContextManager[Any]]
    cursor: Callable[[Any, bool], Any]
    faults: tuple[type[Exception], ...]


@cache
def dialect_of(name: str) -> Dialect:
    return _mysql() if name == "mysql" else _sqlite()


def _sqlite() -> Dialect:
    return Dialect(
        "sqlite",
        '"',
        lambda name: f":{name}",
        _open_sqlite,
        lambda connection, streamed: connection.cursor(),
        (sqlite3.Error,),
    )


def _mysql() -> Dialect:
    from pymysql import MySQLError
    from pymysql.cursors import SSCursor

    return Dialect(
        "mysql",
        "`",
        lambda name: f"%({name})s",
        _open_mysql,
        lambda connection, streamed: connection.cursor(SSCursor if streamed else None),
        (MySQLError, OSError),
    )


@contextmanager
def _open_sqlite(url: str) -> Iterator[sqlite3.Connection]:
    from penstock.drivers.sqlite_place import connect, read_url

    place = read_url(url)
    if place.in_memory:
        raise _no_file()
    with closing(connect(place)) as connection:
        connection.execute("pragma busy_timeout = 30000")
        connection.execute("begin")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def _no_file() -> Exception:
    from penstock.errors import InvalidOption

    return InvalidOption(
        "a SQLite database in memory has no lake: it is gone with the process that has it"
    )


@contextmanager
def _open_mysql(url: str) -> Iterator[Any]:
    import pymysql

    from penstock.drivers.mysql_url import connect_options, database_of

    with closing(pymysql.connect(database=database_of(url), **connect_options(url))) as connection:
        with connection.cursor() as cursor:
            cursor.execute("set session transaction isolation level read committed")
        yield connection
        connection.commit()
