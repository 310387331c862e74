"""Database roles: producer, consumer, viewer, admin."""

from laneway.errors import InvalidName
from laneway.names import SCHEMA_BYTES, check_schema

from .render import render, template

ROLES = ("producer", "consumer", "viewer", "admin")


def role_names(prefix: str) -> list[str]:
    """PostgreSQL would silently cut a longer name, and then grant to another role."""
    names = [f"{check_schema(prefix)}_{role}" for role in ROLES]
    longest = max(len(name.encode()) for name in names)
    if longest > SCHEMA_BYTES:
        raise InvalidName(
            f"the role prefix {prefix!r} makes names of {longest} bytes, "
            f"{SCHEMA_BYTES} are allowed: choose a shorter one"
        )
    return names


def roles_sql(schema: str = "laneway", prefix: str | None = None) -> str:
    """The SQL that creates the roles and states their rights; ``prefix`` is the schema by default.

    Run it as the owner of the schema, in one transaction, after install and after every upgrade.

    >>> print(roles_sql("jobs"))
    """
    check_schema(schema)
    wanted = schema if prefix is None else prefix
    role_names(wanted)
    return render(template("roles"), schema, wanted)
