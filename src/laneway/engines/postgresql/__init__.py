"""PostgreSQL 14 to 18: the verbs are functions in the database, one round trip each."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import PostgresqlEngine
    from .schema import install_sql, upgrade_sql

_LAZY = {"PostgresqlEngine": "engine", "install_sql": "schema", "upgrade_sql": "schema"}

__all__ = ["PostgresqlEngine", "install_sql", "upgrade_sql"]


def __getattr__(name: str) -> Any:
    """Imported on first use: Spark's processes need the connections of this package alone."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
