"""demo: the queue at work, with worker processes, troubles, and a verdict."""

from typing import Annotated

import typer


def demo(
    url: Annotated[
        str | None,
        typer.Option(help="Use a schema of its own in this database, removed at the end."),
    ] = None,
    report: Annotated[
        bool, typer.Option(help="End with a report on Spark, which takes half a minute.")
    ] = True,
) -> None:
    """Show the queue at work on a throwaway server: fair shares, limits, a kill, a verdict."""
    from penstock.demo.__main__ import main

    raise typer.Exit(main(url, report=report))
