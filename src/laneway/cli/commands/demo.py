"""demo: worker processes on a real queue, two faults, and a verdict."""

from typing import Annotated

import typer


def demo(
    url: Annotated[
        str | None,
        typer.Option(
            help="Use this database instead, in a schema of its own that is removed at the end."
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option(help="Build a report with Spark at the end, which takes half a minute.")
    ] = True,
) -> None:
    """Show fairness, limits and crash recovery on a temporary server, with a verdict."""
    from laneway.dev.demo.__main__ import main

    raise typer.Exit(main(url, report=report))
