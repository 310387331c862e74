"""demo: the queue at work on a throwaway server."""

import typer


def demo() -> None:
    """Show the queue at work on a throwaway server."""
    from penstock.demo.__main__ import main

    raise typer.Exit(main())
