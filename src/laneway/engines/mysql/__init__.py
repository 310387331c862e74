"""The engine for MySQL 8.0 and MariaDB 10.6 or newer: each verb runs a few plain statements in one
short transaction."""

from .engine import MysqlEngine
from .schema import install_sql, upgrade_sql

__all__ = ["MysqlEngine", "install_sql", "upgrade_sql"]
