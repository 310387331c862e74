"""doctor: diagnoses problems and suggests fixes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli.connect import check_file, settled
from laneway.cli.exits import Code
from laneway.cli.options import Json, Schema, Url
from laneway.cli.output import emit, printable, say

if TYPE_CHECKING:
    from laneway import Finding

_MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_CODES = {"ok": Code.OK, "warn": Code.NOTHING, "fail": Code.FAILED}


def doctor(
    url: Url = None,
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
    from laneway.cli.doctor_checks import all_findings

    config = settled(url, schema)
    check_file(config)
    levels = set()
    for finding in (*_of_spark(spark), *all_findings(config)):
        levels.add(finding.level)
        emit(finding) if as_json else _show(finding)
    worst = next(level for level in ("fail", "warn", "ok") if level in levels)
    if not as_json:
        say(
            {"ok": "No problems found.", "warn": "Warnings found.", "fail": "Failures found."}[
                worst
            ]
        )
    raise typer.Exit(_CODES[worst])


def _of_spark(wanted: bool) -> "Iterator[Finding]":
    if wanted:
        from laneway.cli.doctor_checks import spark_checks

        yield from spark_checks()


def _show(finding: "Finding") -> None:
    mark = typer.style(_MARKS[finding.level], fg=_COLOURS[finding.level], bold=True)
    typer.echo(f"{mark}  {finding.check}: {printable(finding.message)}")
    if finding.fix:
        typer.echo(f"      → {printable(finding.fix)}")
