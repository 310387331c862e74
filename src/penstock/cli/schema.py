"""install, upgrade, sql, version."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from .config import read_config
from .connect import open_config, settled
from .options import Json, Schema, Url
from .output import emit, say


class Dialect(StrEnum):
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    SQLITE = "sqlite"


Roles = Annotated[
    bool, typer.Option("--roles", help="Also the database roles producer, consumer, viewer, admin.")
]
Prefix = Annotated[
    str | None,
    typer.Option("--role-prefix", show_default=False, help="Of their names.  [default: schema]"),
]


def install(
    roles: Roles = False,
    prefix: Prefix = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Create the schema, or bring it up to date; safe to repeat."""
    config = settled(url, schema)
    with open_config(config) as queue:
        queue.install()
        names = queue.install_roles(prefix) if roles else []
        answer = {"schema": config.schema, "version": queue.schema_version()}
    _report(answer | {"roles": list(names)} if roles else answer, as_json)
    if names and not as_json:
        say(f'Roles: {", ".join(names)}. Give one to a login: GRANT "{names[0]}" TO app;')


def upgrade(url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Apply the migrations that an installed schema is missing."""
    config = settled(url, schema)
    with open_config(config) as queue:
        queue.upgrade()
        answer = {"schema": config.schema, "version": queue.schema_version()}
    _report(answer, as_json)


def sql(
    since: Annotated[
        int | None,
        typer.Option("--from", help="Only what comes after this version: an upgrade."),
    ] = None,
    roles: Annotated[
        bool, typer.Option("--roles", help="Only the database roles and their rights.")
    ] = False,
    prefix: Prefix = None,
    dialect: Annotated[
        Dialect | None, typer.Option(show_default=False, help="[default: that of the URL]")
    ] = None,
    url: Url = None,
    schema: Schema = None,
) -> None:
    """Print the SQL of install or upgrade, without connecting."""
    from penstock.migrate import install_sql, roles_sql, upgrade_sql

    config = read_config()
    name = config.schema if schema is None else schema
    wanted = dialect or _dialect(url or config.url)
    if roles and wanted is not Dialect.POSTGRESQL:
        raise typer.BadParameter(f"{wanted} has no roles here", param_hint="--roles")
    if roles:
        typer.echo(roles_sql(name, prefix))
    elif since is None:
        typer.echo(install_sql(name, dialect=wanted))
    else:
        typer.echo(upgrade_sql(since, name, dialect=wanted))


def _dialect(url: str | None) -> Dialect:
    from penstock.drivers.choice import driver_of

    return Dialect.POSTGRESQL if url is None else Dialect(driver_of(url).dialect)


def version(as_json: Json = False) -> None:
    """Print the version of this package."""
    from penstock import __version__

    if as_json:
        emit({"version": __version__})
    else:
        typer.echo(__version__)


def _report(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit(answer)
    else:
        say(f"Schema {answer['schema']!r} is at version {answer['version']}.")
