"""Nothing is destroyed by accident: ask, or be told with --yes."""

import sys

import typer

from .exits import Code
from .output import printable, say


def confirm(question: str, yes: bool) -> None:
    """Goes on only if somebody agreed."""
    if yes:
        return
    if not sys.stdin.isatty():
        say(f"{question} Nobody is here to ask: add --yes to do it.")
        raise typer.Exit(Code.USAGE)
    if not typer.confirm(printable(question), err=True):
        say("Nothing was done.")
        raise typer.Exit(Code.FAILED)
