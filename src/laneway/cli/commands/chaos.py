"""chaos: real processes, injected faults, and a verdict."""

import secrets
from pathlib import Path
from typing import Annotated

import typer


def chaos(
    engine: Annotated[
        str, typer.Option(help="postgresql, sqlite or mariadb; a temporary one is created.")
    ] = "postgresql",
    seed: Annotated[int | None, typer.Option(help="Seed of the run; random by default.")] = None,
    seconds: Annotated[float, typer.Option(min=2, help="How long faults are injected.")] = 60,
    faults: Annotated[
        str | None,
        typer.Option(
            help="Only these, separated by commas: poison, kill, stop, term, cut, silent, idle, "
            "server, snapshot, lock, and two that must be named: disk (as root), promote."
        ),
    ] = None,
    through: Annotated[
        str | None,
        typer.Option(
            help="Connect through pgbouncer (in transaction mode), or through "
            "pgbouncer-unannounced, of which the library is not told."
        ),
    ] = None,
    by_kind: Annotated[
        bool, typer.Option("--by-kind", help="Workers claim only some kinds of messages.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(
            help="Use this database instead, in a schema of its own that is removed at the end; "
            "the server is not harmed."
        ),
    ] = None,
    drain_timeout: Annotated[
        float,
        typer.Option(min=5, help="Max seconds to finish what is left after the last fault."),
    ] = 180,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the ledgers and the dump in this folder.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as one JSON object.")
    ] = False,
) -> None:
    """Kill, freeze and disconnect real processes and servers, then check every guarantee."""
    from laneway.dev.chaos.command import main

    number = secrets.randbelow(1_000_000) if seed is None else seed
    kinds = None if faults is None else [kind.strip() for kind in faults.split(",")]
    terms = (engine, number, seconds, url, json, keep, drain_timeout, kinds, through, by_kind)
    raise typer.Exit(main(*terms))
