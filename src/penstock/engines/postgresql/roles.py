"""Database roles: producer, consumer, viewer, admin."""

from penstock.errors import InvalidName
from penstock.names import SCHEMA_BYTES, check_schema

from .sqltext import render, template

ROLES = ("producer", "consumer", "viewer", "admin")


def role_names(prefix: str) -> list[str]:
    """PostgreSQL would cut a longer name in silence, and then grant to another role."""
    names = [f"{check_schema(prefix)}_{role}" for role in ROLES]
    longest = max(len(name.encode()) for name in names)
    if longest > SCHEMA_BYTES:
        raise InvalidName(
            f"the role prefix {prefix!r} makes names of {longest} bytes, "
            f"{SCHEMA_BYTES} are allowed: give a shorter one"
        )
    return names


def roles_sql(schema: str = "penstock", prefix: str | None = None) -> str:
    """The SQL that creates the roles and states their rights; ``prefix`` is the schema by default.

    Run it as the owner of the schema, in one transaction, after install and after every upgrade.

    >>> print(roles_sql("jobs"))
    """
    check_schema(schema)
    wanted = schema if prefix is None else prefix
    role_names(wanted)
    return render(template("roles"), schema, wanted)
