"""SQL files under ``sql/`` with their blanks filled in: names quoted, values as literals.

The text is complete, without parameters, because COPY takes none and so that a partition can be
read by any driver.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from psycopg import Connection, sql

_FOLDER = files(__package__) / "sql"


def statement(connection: Connection[Any] | None, name: str, **blanks: Any) -> str:
    """``schema``, ``table`` and ``columns`` are identifiers; what is composed stays as it is."""
    return _filled(name, blanks).as_string(connection)


def composed(name: str, **blanks: Any) -> sql.Composed:
    """As ``statement``, for a part of another one."""
    return _filled(name, blanks)


def _filled(name: str, blanks: dict[str, Any]) -> sql.Composed:
    return _template(name).format(**{key: _part(key, value) for key, value in blanks.items()})


def _part(key: str, value: Any) -> sql.Composable:
    if isinstance(value, sql.Composable):
        return value
    if key in ("schema", "table"):
        return sql.Identifier(value)
    if key == "columns":
        return sql.SQL(", ").join([sql.Identifier(name) for name in value])
    return sql.Literal(value)


@cache
def _template(name: str) -> sql.SQL:
    lines = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--")).strip()
    return sql.SQL(text)
