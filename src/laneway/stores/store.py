"""A connection that runs named statements, and the choice of one by URL.

Parameters are put into a statement of :mod:`laneway.sqlfile` in the syntax of one database.

Values are passed to the driver, names are quoted. Forms of a parameter, besides a plain value:

``$ids...``        a list of values: ``in ($ids...)``
``$column:name``   an identifier; ``$columns:names`` a list of them
``$table:table``   one of our tables, by its name without schema; ``$tables:tables`` a list of them
``$query:sql``     SQL that is complete
``$batches:json``  a list as JSON text
``$day:micros``    a time or a day as microseconds since 1970
``$since:moment``  a time as the views of this database show it
``$sum:text``      a number as text
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from laneway.drivers.choice import DRIVERS, driver_of
from laneway.drivers.database_url import dialect_url
from laneway.drivers.errors import WrongServer, may_be_read_only
from laneway.errors import LanewayError
from laneway.extras import needs
from laneway.sqlfile import pieces, statements

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Syntax:
    """``render`` puts the real schema's name in; ``table`` is one of our tables, by schema and
    name; ``percent``: the driver reads a percent sign as the start of a parameter."""

    render: Callable[[str, str], str]
    table: Callable[[str, str], str]
    quoted: Callable[[str], str]
    placeholder: Callable[[str], str]
    moment: Callable[[datetime], object]
    percent: bool


def fill(syntax: Syntax, schema: str, text: str, values: Values) -> tuple[str, dict[str, Any]]:
    """The text for the driver, and the values that it names. A parameter without a value stays
    open: each row that the statement is run for brings its own."""
    filling = _Filling(syntax, schema, values)
    # Cut first: a schema's name may look like a parameter.
    for piece in pieces(text):
        filling.add_sql(syntax.render(piece.text, schema))
        if piece.parameter is not None:
            filling.add(piece.parameter, piece.form)
    return "".join(filling.texts), filling.used


class _Filling:
    def __init__(self, syntax: Syntax, schema: str, values: Values) -> None:
        self._syntax, self._schema, self._values = syntax, schema, values
        self.texts: list[str] = []
        self.used: dict[str, Any] = {}

    def add_sql(self, text: str) -> None:
        self.texts.append(text.replace("%", "%%") if self._syntax.percent else text)

    def add(self, name: str, form: str | None) -> None:
        if form in _SQL_FORMS:
            self.add_sql(_SQL_FORMS[form](self._syntax, self._schema, self._values[name]))
        elif form == "...":
            items = {f"{name}_{n}": item for n, item in enumerate(self._values[name])}
            self.used.update(items)
            self.texts.append(", ".join(map(self._syntax.placeholder, items)) or "null")
        elif form is None:
            if name in self._values:
                self.used[name] = self._values[name]
            self.texts.append(self._syntax.placeholder(name))
        else:
            value = self._values[name]
            key = f"{name}_{form}"
            self.used[key] = None if value is None else self._converted(form, value)
            self.texts.append(self._syntax.placeholder(key))

    def _converted(self, form: str, value: Any) -> object:
        return self._syntax.moment(value) if form == "moment" else _VALUE_FORMS[form](value)


_SQL_FORMS: dict[str | None, Callable[[Syntax, str, Any], str]] = {
    "sql": lambda syntax, schema, text: text,
    "name": lambda syntax, schema, name: syntax.quoted(name),
    "names": lambda syntax, schema, names: ", ".join(map(syntax.quoted, names)),
    "table": lambda syntax, schema, name: syntax.table(schema, name),
    "tables": lambda syntax, schema, names: ", ".join(syntax.table(schema, n) for n in names),
}


def micros(at: datetime | date) -> int:
    """Microseconds since 1970."""
    if isinstance(at, datetime):
        return (at - _EPOCH) // _MICROSECOND
    return (at - _EPOCH.date()) // _MICROSECOND


_VALUE_FORMS: dict[str, Callable[[Any], object]] = {
    "json": json.dumps,
    "micros": micros,
    "text": str,
}


@dataclass(frozen=True)
class StoreAddress:
    """A database and the schema in it (on MySQL and SQLite: the prefix of the tables)."""

    url: str = field(repr=False)  # it may hold a password
    schema: str
    dialect: str = "postgresql"


def store_address(url: str, schema: str) -> StoreAddress:
    """With a URL that the database's own driver understands; raises InvalidOption if none does."""
    return StoreAddress(dialect_url(url), schema, driver_of(url).dialect)


Row = tuple[Any, ...]
S = TypeVar("S", bound="Store")


class Store(ABC):
    """An open connection and the named statements of a package.

    A statement outside of a transaction commits by itself. ``connection`` is the driver's own.
    """

    syntax: ClassVar[Syntax]

    def __init__(self, address: StoreAddress, package: str, connection: Any) -> None:
        self.address = address
        self.connection = connection
        self._statements = statements(package, address.dialect)

    def ask(self, name: str, **values: Any) -> list[Row]:
        """The rows of a statement."""
        return self.ask_with_names(name, **values)[1]

    def ask_with_names(self, name: str, **values: Any) -> tuple[list[str], list[Row]]:
        """The names of the columns, and the rows."""
        cursor = self._execute(*self._filled(name, values))
        try:
            if cursor.description is None:
                return [], []
            return [column[0] for column in cursor.description], list(cursor.fetchall())
        finally:
            cursor.close()

    def tell(self, name: str, **values: Any) -> int:
        """How many rows a statement changed."""
        cursor = self._execute(*self._filled(name, values))
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def tell_many(self, name: str, rows: Sequence[Mapping[str, Any]], **values: Any) -> None:
        """Runs a statement once for each row of values; ``values`` holds for all."""
        text, _ = self._filled(name, values)
        cursor = self.connection.cursor()
        try:
            cursor.executemany(text, rows)
        finally:
            cursor.close()

    def stream(self, name: str, size: int, **values: Any) -> Iterator[Sequence[Row]]:
        """The rows, up to ``size`` at a time; they are never all in memory."""
        cursor = self._execute(*self._filled(name, values), streamed=True)
        try:
            while rows := cursor.fetchmany(size):
                yield rows
        finally:
            cursor.close()

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """Commits at the end, rolls back on any error. On SQLite it waits for the write lock."""

    @abstractmethod
    def _execute(self, text: str, values: dict[str, Any], *, streamed: bool = False) -> Any:
        """Runs it on a new cursor."""

    def _filled(self, name: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        return fill(self.syntax, self.address.schema, self._statements[name], values)

    @classmethod
    @abstractmethod
    def connect(cls, address: StoreAddress) -> Any:
        """A new connection of the driver, which commits each statement."""

    @classmethod
    def takes_no_writes(cls, connection: Any) -> bool:
        """Whether the server is a standby, or read-only."""
        return False

    @classmethod
    @abstractmethod
    def error(cls, error: Exception, address: StoreAddress) -> LanewayError | None:
        """Ours for a driver's error, without secrets; None if it is not the driver's."""


def open_store(address: StoreAddress, package: str) -> AbstractContextManager[Store]:
    """A connection for the statements of ``package``, closed at the end."""
    return opened(_store_class(address.dialect), address, package)


@contextmanager
def opened(kind: type[S], address: StoreAddress, package: str) -> Iterator[S]:
    """The same for a known database. Errors are ours and not chained: Spark would print the
    chain, with the driver's text in it."""
    with translated_errors(kind, address):
        connection = kind.connect(address)
        try:
            with wrong_server_told(kind, connection):
                yield kind(address, package, connection)
        finally:
            connection.close()


@contextmanager
def wrong_server_told(kind: type[Store], connection: Any) -> Iterator[None]:
    """Raises WrongServer for what a server refuses that takes no writes at all."""
    try:
        yield
    except Exception as error:
        if may_be_read_only(error) and kind.takes_no_writes(connection):
            raise WrongServer(str(error)) from None
        raise


@contextmanager
def translated_errors(kind: type[Store], address: StoreAddress) -> Iterator[None]:
    """A driver's errors as ours."""
    try:
        yield
    except LanewayError:
        raise
    except Exception as error:
        ours = kind.error(error, address)
        if ours is None:
            raise
        raise ours from None


def _store_class(dialect: str) -> type[Store]:
    driver = DRIVERS[dialect]
    with needs(driver.database, driver.package, driver.extra):
        module = import_module(f".{dialect}", __package__)
    found: type[Store] = module.STORE
    return found
