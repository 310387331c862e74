"""MySQL 8 and MariaDB 10.6 or newer: a few plain statements in one short transaction a verb."""

from .engine import MysqlEngine
from .migrations import install_sql, upgrade_sql

__all__ = ["MysqlEngine", "install_sql", "upgrade_sql"]
