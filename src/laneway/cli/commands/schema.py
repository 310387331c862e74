"""install, upgrade, sql, version; doctor diagnoses problems and suggests fixes."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import check_file, open_config, read_config, settled
from laneway.cli.exits import Code
from laneway.cli.options import Json, Schema, Url, Urls
from laneway.cli.output import emit, printable, say
from laneway.cli.sources import sources

if TYPE_CHECKING:
    from laneway import Finding, Queue


class SqlDialect(StrEnum):
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    SQLITE = "sqlite"


Roles = Annotated[
    bool,
    typer.Option(
        "--roles", help="Also create the database roles producer, consumer, viewer and admin."
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--role-prefix", show_default=False, help="Prefix of the roles' names.  [default: schema]"
    ),
]

RepairToo = Annotated[
    bool,
    typer.Option(
        "--repair", help="Also restore tables, indexes and functions that were dropped or changed."
    ),
]


def install(
    roles: Roles = False,
    prefix: Prefix = None,
    wait: Annotated[
        float,
        typer.Option(
            min=0,
            max=86_400,
            metavar="SECONDS",
            help="Keep trying for this long if the server is not up yet, e.g. in a container.",
        ),
    ] = 0,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Create Laneway's tables, or upgrade them; safe to repeat."""
    config = settled(url, schema)
    with open_config(config) as queue:
        wait_for(queue, wait)
        queue.install()
        names = queue.install_roles(prefix) if roles else []
        answer = {"schema": config.schema, "version": queue.schema_version()}
    _report(answer | {"roles": list(names)} if roles else answer, as_json)
    if names and not as_json:
        say(f'Roles: {", ".join(names)}. Grant one to a login: GRANT "{names[0]}" TO app;')


_PAUSE = 0.5  # seconds between two tries


def wait_for(queue: "Queue", seconds: float) -> None:
    """Until the server answers; raises ConnectionUnavailable if it does not within this time."""
    from laneway.errors import ConnectionUnavailable, SchemaMissing

    end, said = time.monotonic() + seconds, ""
    while True:
        try:
            queue.clock()
            return
        except SchemaMissing:  # a file's clock is read with its settings
            return
        except ConnectionUnavailable as error:
            if time.monotonic() >= end:
                raise
            if str(error) != said:
                said = str(error)
                say(f"Waiting for the database: {said}")
        time.sleep(_PAUSE)


def upgrade(
    repair: RepairToo = False, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Apply missing migrations to an installed schema."""
    config = settled(url, schema)
    check_file(config)
    repairs: list[dict[str, object]] = []
    with open_config(config) as queue:
        queue.upgrade()
        if repair:
            repairs = [{"part": one.part, "done": one.done} for one in queue.repair()]
        answer = {"schema": config.schema, "version": queue.schema_version()}
    _report(answer | {"repairs": repairs} if repair else answer, as_json)
    for one in [] if as_json else repairs:
        say(f"{'Put back' if one['done'] else 'Lost, restore it from a backup'}: {one['part']}.")
    if any(not one["done"] for one in repairs):
        raise typer.Exit(1)


def sql(
    since: Annotated[
        int | None,
        typer.Option("--from", help="Print only the upgrade from this version."),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(
            "--version",
            show_default=False,
            help="Stop at this schema version.  [default: the newest]",
        ),
    ] = None,
    roles: Annotated[
        bool, typer.Option("--roles", help="Print only the database roles and their privileges.")
    ] = False,
    prefix: Prefix = None,
    dialect: Annotated[
        SqlDialect | None,
        typer.Option(show_default=False, help="The SQL dialect.  [default: that of the URL]"),
    ] = None,
    url: Url = None,
    schema: Schema = None,
) -> None:
    """Print the SQL of install or upgrade, without connecting."""
    from laneway.migrate import install_sql, roles_sql, upgrade_sql

    config = read_config()
    name = config.schema if schema is None else schema
    wanted = dialect or _dialect(url or config.url)
    if roles and wanted is not SqlDialect.POSTGRESQL:
        raise typer.BadParameter(
            f"roles are for PostgreSQL only, not for {wanted}", param_hint="--roles"
        )
    if roles:
        typer.echo(roles_sql(name, prefix))
    elif since is None:
        typer.echo(install_sql(name, dialect=wanted, version=version))
    else:
        typer.echo(upgrade_sql(since, name, dialect=wanted, version=version))


def _dialect(url: str | None) -> SqlDialect:
    from laneway.drivers.choice import driver_of

    return SqlDialect.POSTGRESQL if url is None else SqlDialect(driver_of(url).dialect)


def print_version(wanted: bool) -> None:
    """``laneway --version``"""
    if wanted:
        version()
        raise typer.Exit


def version(as_json: Json = False) -> None:
    """Print the version of Laneway."""
    from laneway import __version__

    if as_json:
        emit({"version": __version__})
    else:
        typer.echo(__version__)


def _report(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit(answer)
    else:
        say(f"Schema {answer['schema']!r} is at version {answer['version']}.")


_MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_CODES = {"ok": Code.OK, "warn": Code.NOTHING, "fail": Code.FAILED}


def doctor(
    url: Urls = None,
    schema: Schema = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also check that Spark can run, by starting it once.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Diagnose problems and suggest fixes.

    Checks the connection, the server's settings, the schema and the queues.

    Exit code: 0 no problems, 3 warnings, 1 failures.
    """
    from laneway.cli.doctor_checks import findings_of_all

    found = sources(url, schema)
    levels = set()
    for name, finding in (*_of_spark(spark), *findings_of_all(found)):
        levels.add(finding.level)
        if as_json:
            emit(finding if name is None else {"database": name, **asdict(finding)})
        else:
            _show(name, finding)
    worst = next(level for level in ("fail", "warn", "ok") if level in levels)
    if not as_json:
        say(
            {"ok": "No problems found.", "warn": "Warnings found.", "fail": "Failures found."}[
                worst
            ]
        )
    raise typer.Exit(_CODES[worst])


def _of_spark(wanted: bool) -> "Iterator[tuple[None, Finding]]":
    if wanted:
        from laneway.cli.doctor_checks import spark_checks

        yield from ((None, finding) for finding in spark_checks())


def _show(name: str | None, finding: "Finding") -> None:
    mark = typer.style(_MARKS[finding.level], fg=_COLOURS[finding.level], bold=True)
    of = "" if name is None else f"{printable(name)}: "
    typer.echo(f"{mark}  {of}{finding.check}: {printable(finding.message)}")
    if finding.fix:
        typer.echo(f"      → {printable(finding.fix)}")
