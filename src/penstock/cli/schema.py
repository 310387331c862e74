"""install, upgrade, sql, version."""

from typing import Annotated

import typer

from .connect import open_config, settled
from .options import Json, Schema, Url
from .output import emit, say


def install(url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Create the schema, or bring it up to date; safe to repeat."""
    _migrate(url, schema, as_json, upgrade=False)


def upgrade(url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Apply the migrations that an installed schema is missing."""
    _migrate(url, schema, as_json, upgrade=True)


def sql(
    schema: Schema = None,
    since: Annotated[
        int | None,
        typer.Option("--from", help="Only what comes after this version: an upgrade."),
    ] = None,
) -> None:
    """Print the SQL of install or upgrade, without connecting."""
    from penstock import install_sql, upgrade_sql

    from .config import read_config

    name = read_config().schema if schema is None else schema
    typer.echo(install_sql(name) if since is None else upgrade_sql(since, name))


def version(as_json: Json = False) -> None:
    """Print the version of this package."""
    from penstock import __version__

    if as_json:
        emit({"version": __version__})
    else:
        typer.echo(__version__)


def _migrate(url: str | None, schema: str | None, as_json: bool, *, upgrade: bool) -> None:
    config = settled(url, schema)
    with open_config(config) as queue:
        if upgrade:
            queue.upgrade()
        else:
            queue.install()
        number = queue.schema_version()
    if as_json:
        emit({"schema": config.schema, "version": number})
    else:
        say(f"Schema {config.schema!r} is at version {number}.")
