"""Install and upgrade as SQL that can be printed, without a connection."""

from .engines.postgresql.migrations import install_sql, upgrade_sql

__all__ = ["install_sql", "upgrade_sql"]
