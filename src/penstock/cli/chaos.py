"""chaos: real processes, real faults, and a verdict."""

import secrets
from pathlib import Path
from typing import Annotated

import typer


def chaos(
    engine: Annotated[
        str, typer.Option(help="postgresql, sqlite or mariadb; a throwaway one of its own.")
    ] = "postgresql",
    seed: Annotated[
        int | None, typer.Option(help="Decides what happens; by default a new one.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=2, help="How long faults go on.")] = 60,
    faults: Annotated[
        str | None,
        typer.Option(
            help="Only these, with commas: poison, kill, stop, term, cut, server, snapshot, lock; "
            "and two that are played only if they are named: disk (as root), promote."
        ),
    ] = None,
    through: Annotated[
        str | None, typer.Option(help="pgbouncer, in transaction mode, before the server.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Run in a schema of its own of this database, removed at the end; "
            "its server is left alone."
        ),
    ] = None,
    patience: Annotated[
        float, typer.Option(min=5, help="Seconds for what is left after the last fault.")
    ] = 180,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the ledgers and the dump in this folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The verdict as one JSON object.")] = False,
) -> None:
    """Kill, freeze and cut off real processes and servers, and check every promise."""
    from penstock.chaos.command import main

    number = secrets.randbelow(1_000_000) if seed is None else seed
    kinds = None if faults is None else [kind.strip() for kind in faults.split(",")]
    raise typer.Exit(main(engine, number, seconds, url, json, keep, patience, kinds, through))
