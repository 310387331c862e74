"""doctor: what could go wrong or has, and how to mend it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from .connect import check_file, settled
from .exits import Code
from .options import Json, Schema, Url
from .output import emit, printable, say

if TYPE_CHECKING:
    from penstock import Finding

_MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_CODES = {"ok": Code.OK, "warn": Code.NOTHING, "fail": Code.FAILED}


def doctor(
    url: Url = None,
    schema: Schema = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Check also that Spark can run: starts it once.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what could go wrong or has, and how to mend it.

    Checks the connection, the server's settings, the schema and the queues.

    Exit code: 0 all well, 3 warnings, 1 failures.
    """
    from .checks import examined

    config = settled(url, schema)
    check_file(config)
    levels = set()
    for finding in (*_of_spark(spark), *examined(config)):
        levels.add(finding.level)
        emit(finding) if as_json else _tell(finding)
    worst = next(level for level in ("fail", "warn", "ok") if level in levels)
    if not as_json:
        say({"ok": "All is well.", "warn": "Warnings.", "fail": "Failures."}[worst])
    raise typer.Exit(_CODES[worst])


def _of_spark(wanted: bool) -> "Iterator[Finding]":
    if wanted:
        from .spark_checks import spark_checks

        yield from spark_checks()


def _tell(finding: "Finding") -> None:
    mark = typer.style(_MARKS[finding.level], fg=_COLOURS[finding.level], bold=True)
    typer.echo(f"{mark}  {finding.check}: {printable(finding.says)}")
    if finding.mend:
        typer.echo(f"      → {printable(finding.mend)}")
