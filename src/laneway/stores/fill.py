"""Parameters put into a statement of :mod:`laneway.sqlfile`, in the syntax of one database.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from laneway.sqlfile import pieces

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
