"""The command line: install, upgrade, and the SQL of both without a connection.

Data goes to stdout, talk to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

import json
import sys
from typing import Annotated

from penstock import PenstockError, Queue, __version__, install_sql, upgrade_sql

try:
    import typer
except ModuleNotFoundError:
    sys.exit('The command line needs an extra: pip install "penstock[cli]"')

app = typer.Typer(
    help="Durable multi-tenant message queues inside your database.",
    no_args_is_help=True,
    add_completion=True,
)

Url = Annotated[
    str, typer.Option(envvar="DATABASE_URL", help="Where the queue lives: postgresql://…")
]
Schema = Annotated[str, typer.Option(help="The schema that holds Penstock's tables.")]
Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for scripts.")]


@app.command()
def install(url: Url, schema: Schema = "penstock", as_json: Json = False) -> None:
    """Create the schema, or bring it up to date; safe to repeat."""
    _migrate(url, schema, as_json, upgrade=False)


@app.command()
def upgrade(url: Url, schema: Schema = "penstock", as_json: Json = False) -> None:
    """Apply the migrations that an installed schema is missing."""
    _migrate(url, schema, as_json, upgrade=True)


@app.command()
def sql(
    schema: Schema = "penstock",
    since: Annotated[
        int | None,
        typer.Option("--from", help="Only what comes after this version: an upgrade."),
    ] = None,
) -> None:
    """Print the SQL that install or upgrade would run, without connecting."""
    print(install_sql(schema) if since is None else upgrade_sql(since, schema))


@app.command()
def version(as_json: Json = False) -> None:
    """Print the version of this package."""
    print(json.dumps({"version": __version__}) if as_json else __version__)


def _migrate(url: str, schema: str, as_json: bool, *, upgrade: bool) -> None:
    with Queue(url, schema=schema) as queue:
        if upgrade:
            queue.upgrade()
        else:
            queue.install()
        number = queue.schema_version()
    if as_json:
        print(json.dumps({"schema": schema, "version": number}))
    else:
        print(f"Schema {schema!r} is at version {number}.", file=sys.stderr)


def main() -> None:
    try:
        app()
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
