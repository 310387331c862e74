"""Install and upgrade as SQL that can be printed, without a connection."""

from importlib import import_module
from typing import Any

from .engines.postgresql.schema import roles_sql

__all__ = ["install_sql", "roles_sql", "upgrade_sql"]


def install_sql(schema: str = "laneway", *, dialect: str = "postgresql") -> str:
    """The SQL that installs Laneway into ``schema``, for a migration tool or a careful reader.

    ``dialect`` is postgresql, mysql or sqlite. Run it once, in one transaction.

    >>> print(install_sql("jobs"))
    """
    return _engine(dialect).install_sql(schema)  # type: ignore[no-any-return]


def upgrade_sql(version: int, schema: str = "laneway", *, dialect: str = "postgresql") -> str:
    """The SQL that brings a schema of ``version`` up to this version's, empty if it is there.

    Run it once, in one transaction.

    >>> print(upgrade_sql(1, "jobs"))
    """
    return _engine(dialect).upgrade_sql(version, schema)  # type: ignore[no-any-return]


def _engine(dialect: str) -> Any:
    return import_module(f".engines.{dialect}", __package__)
