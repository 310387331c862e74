"""MySQL, MariaDB and SQLite, for batch reads and bulk publish: plain rows on a short connection.

The SQL in ``sql/rows`` is what these databases have in common; values are always parameters.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from penstock.drivers.faults import translated
from penstock.drivers.sqlite_faults import translated as translated_sqlite
from penstock.drivers.sqlite_patience import PATIENCE, patiently
from penstock.drivers.sqlite_place import connect as connect_sqlite
from penstock.drivers.sqlite_place import read_url
from penstock.errors import DriverMissing, PenstockError

from .options import Address

_FOLDER = files(__package__) / "sql" / "rows"
_PARAMETER = re.compile(r"%\((\w+)\)s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Rows = Sequence[Sequence[Any]]


class RowStore:
    """A connection, and how its database wants to be spoken to."""

    def __init__(self, address: Address, connection: Any) -> None:
        self.connection = connection
        self._prefix = address.schema
        self._is_sqlite = address.dialect == "sqlite"

    def named(self, table: str) -> str:
        """One of our tables or views, quoted as both databases take it."""
        prefix = self._prefix.replace("`", "``")
        return f"`{prefix}_{table}`"

    def moment(self, time: datetime | None) -> object:
        """A time as the views show it."""
        if time is None:
            return None
        if self._is_sqlite:
            return round((time - _EPOCH).total_seconds() * 1_000_000)
        return time.astimezone(UTC).replace(tzinfo=None)

    def ask(self, name: str, values: Mapping[str, object], **blanks: str) -> Rows:
        with closing(self._cursor()) as cursor:
            cursor.execute(self.text(name, **blanks), values)
            return cursor.fetchall()  # type: ignore[no-any-return]

    def stream(self, text: str, values: Mapping[str, object], size: int) -> Iterator[Rows]:
        """The rows in portions; the server keeps the rest."""
        with closing(self._cursor(streaming=True)) as cursor:
            cursor.execute(text, values)
            while rows := cursor.fetchmany(size):
                yield rows

    def tell(self, name: str, rows: Sequence[Mapping[str, object]] = (), **blanks: str) -> None:
        with closing(self._cursor()) as cursor:
            text = self.text(name, **blanks)
            if rows:
                cursor.executemany(text, rows)
            else:
                cursor.execute(text)

    def text(self, name: str, **blanks: str) -> str:
        text = _template(name).format(**blanks)
        return _PARAMETER.sub(r":\1", text).replace("%%", "%") if self._is_sqlite else text

    def create(self, table: str) -> None:
        kinds = ("blob", "text") if self._is_sqlite else ("longblob", "longtext")
        charset = "" if self._is_sqlite else " character set utf8mb4"
        with self.transaction():
            self.tell("stage", table=table, blob=kinds[0], text=kinds[1] + charset)

    def drop(self, names: Sequence[str]) -> None:
        for name in names:
            quoted = name.replace("`", "``")
            with self.transaction():
                self.tell("drop", table=f"`{quoted}`")

    def tables(self, start: str) -> list[str]:
        """The names of our tables that begin so."""
        name = "tables_sqlite" if self._is_sqlite else "tables_mysql"
        return [row[0] for row in self.ask(name, {"start": f"{self._prefix}_{start}"})]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """On SQLite it takes the write lock at once, and waits for it."""
        if self._is_sqlite:
            patiently(lambda: self.connection.execute("begin immediate"))
        try:
            yield
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.commit()

    def _cursor(self, streaming: bool = False) -> Any:
        if self._is_sqlite or not streaming:
            return self.connection.cursor()
        from pymysql.cursors import SSCursor

        return self.connection.cursor(SSCursor)


@contextmanager
def row_store(address: Address) -> Iterator[RowStore]:
    """Errors come in our own words, without a secret and without a chain: Spark would print it."""
    try:
        with closing(_connect(address)) as connection:
            yield RowStore(address, connection)
    except PenstockError:
        raise
    except sqlite3.Error as error:
        path = read_url(address.url).path
        raise translated_sqlite(error, path, PATIENCE) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "pymysql" and not isinstance(error, OSError):
            raise
        raise translated(error, address.url) from None


def _connect(address: Address) -> Any:
    if address.dialect == "sqlite":
        return connect_sqlite(read_url(address.url))
    try:
        import pymysql
    except ImportError as error:
        raise DriverMissing(f'PyMySQL is needed: pip install "penstock[mysql]" ({error})') from None
    from penstock.drivers.mysql_url import connect_options, database_of

    connection = pymysql.connect(database=database_of(address.url), **connect_options(address.url))
    with connection.cursor() as cursor:
        cursor.execute(_template("session_mysql"))
    return connection


@cache
def _template(name: str) -> str:
    lines = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--")).strip()
