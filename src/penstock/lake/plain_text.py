"""Statements for plain databases: ``{name}`` is a value, a piece of the dialect, or a table."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from .plain_driver import Dialect

_BLANK = re.compile(r"\{(\w+)\}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PIECES = ("xid", "after", "upto", "order", "upto_last", "insert_once", "unsettled")


def filled(
    dialect: Dialect, schema: str, name: str, values: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The statement, and the values that it names; a list becomes as many values."""
    used: dict[str, Any] = {}

    def fill(match: re.Match[str]) -> str:
        blank = match[1]
        if blank in _PIECES:
            return _BLANK.sub(fill, _template(dialect.name, blank))
        if blank.removesuffix("_json") in values and blank.endswith("_json"):
            listed = values[blank.removesuffix("_json")]
            used[blank] = None if listed is None else json.dumps(listed)
            return dialect.blank(blank)
        if blank not in values:
            table = f"{schema}_{blank}".replace(dialect.quote, 2 * dialect.quote)
            return f"{dialect.quote}{table}{dialect.quote}"
        if isinstance(values[blank], list):
            names = {f"{blank}_{n}": value for n, value in enumerate(values[blank])}
            used.update({key: _written(value) for key, value in names.items()})
            return ", ".join(map(dialect.blank, names)) or "null"
        used[blank] = _written(values[blank])
        return dialect.blank(blank)

    return _BLANK.sub(fill, _template(dialect.name, name)), used


def read(names: list[str], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row in Python's own types; what a column holds is known by its name."""
    return tuple(_read(name, value) for name, value in zip(names, row, strict=True))


def _read(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode()
    if value is None:
        return None
    if name in ("batches", "replaces"):
        return json.loads(value)
    if name == "checksum":
        return Decimal(value)
    if name == "day":
        return date(1970, 1, 1) + timedelta(microseconds=int(value))
    if name.endswith("_at"):
        return _EPOCH + timedelta(microseconds=int(value))
    return int(value) if isinstance(value, Decimal) else value


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)) // timedelta(microseconds=1)
    return str(value) if isinstance(value, Decimal) else value


@cache
def _template(dialect: str, name: str) -> str:
    """The dialect's own, else the one for all."""
    folder = files(__package__) / "sql"
    own = folder / dialect / f"{name}.sql"
    chosen = own if own.is_file() else folder / "plain" / f"{name}.sql"
    lines = chosen.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--")).strip()
    # Its driver puts values in by Python's % operator.
    return text.replace("%", "%%") if dialect == "mysql" else text
