"""The engine for SQLite 3.35 and newer: one file, one writer at a time, short transactions."""

from .engine import SqliteEngine
from .schema import install_sql, upgrade_sql

__all__ = ["SqliteEngine", "install_sql", "upgrade_sql"]
