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
    answer = _answer(printable(question))
    if answer is not Code.OK:
        say("Nothing was done.")
        raise typer.Exit(answer)


def _answer(question: str) -> Code:
    try:
        return Code.OK if typer.confirm(question, err=True) else Code.FAILED
    except typer.Abort as abort:
        say("")  # the question's line has no end yet
        # It stands for Ctrl-C as well as for Ctrl-D, which is a "no".
        interrupted = isinstance(abort.__context__, KeyboardInterrupt)
        return Code.INTERRUPTED if interrupted else Code.FAILED
