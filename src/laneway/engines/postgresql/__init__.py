"""PostgreSQL 14 to 18: the verbs are functions in the database, one round trip each."""

from .engine import PostgresqlEngine
from .schema import install_sql, upgrade_sql

__all__ = ["PostgresqlEngine", "install_sql", "upgrade_sql"]
