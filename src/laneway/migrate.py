"""Install, upgrade and uninstall as SQL that can be printed, without a connection."""

from importlib import import_module
from typing import Any

from .engines.postgresql.schema import roles_sql

__all__ = ["install_sql", "roles_sql", "uninstall_sql", "upgrade_sql"]


def install_sql(
    schema: str = "laneway", *, dialect: str = "postgresql", version: int | None = None
) -> str:
    """The SQL that installs Laneway into ``schema``, for a migration tool or a careful reader.

    ``dialect`` is postgresql, mysql or sqlite. ``version`` is that of the schema, by default this
    Laneway's newest. Run it in one transaction. On PostgreSQL it can be repeated: what was applied
    is left out, also in a schema that is newer.

    >>> print(install_sql("jobs", version=1))
    """
    return _engine(dialect).install_sql(schema, version)  # type: ignore[no-any-return]


def upgrade_sql(
    since: int,
    schema: str = "laneway",
    *,
    dialect: str = "postgresql",
    version: int | None = None,
) -> str:
    """The SQL that brings a schema of version ``since`` up to ``version``, by default this
    Laneway's newest; empty if it is there. It can be repeated where install_sql() can.

    >>> print(upgrade_sql(1, "jobs"))
    """
    return _engine(dialect).upgrade_sql(since, schema, version)  # type: ignore[no-any-return]


def uninstall_sql(schema: str = "laneway", *, dialect: str = "postgresql") -> str:
    """The SQL that removes Laneway with everything in it.

    >>> print(uninstall_sql("jobs"))
    """
    return _engine(dialect).uninstall_sql(schema)  # type: ignore[no-any-return]


def _engine(dialect: str) -> Any:
    return import_module(f".engines.{dialect}.schema", __package__)
