"""Asks before anything is changed or deleted, unless --yes is given."""

import os
import select
import signal
import sys

import typer

from .exits import Code
from .output import printable, say


def confirm(question: str, yes: bool) -> None:
    """Returns only if somebody agreed."""
    if yes:
        return
    if not sys.stdin.isatty():
        say(f"{question} Cannot ask without a terminal: add --yes to go ahead.")
        raise typer.Exit(Code.USAGE)
    answer = _answer(printable(question))
    if answer is not Code.OK:
        say("Nothing was done.")
        raise typer.Exit(answer)


def _answer(question: str) -> Code:
    try:
        while True:
            sys.stderr.write(f"{question} [y/N]: ")
            sys.stderr.flush()
            _wait_for_a_line()
            line = sys.stdin.readline()
            match line.strip().lower():
                case "y" | "yes":
                    return Code.OK
                case "" | "n" | "no":
                    if not line:
                        say("")  # Ctrl-D leaves the cursor behind the question
                    return Code.FAILED
            say("Please answer y or n.")
    except KeyboardInterrupt:
        say("")
        return Code.INTERRUPTED


def _wait_for_a_line() -> None:
    """Wait until somebody typed a line, or pressed Ctrl-C.

    A read alone would miss a Ctrl-C that arrives after Python last looked for
    signals and before the read blocks: it would wait for a key that nobody
    presses. The pipe remembers the signal.
    """
    if os.name != "posix":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer)
    try:
        while sys.stdin not in select.select([sys.stdin, reader], [], [])[0]:
            os.read(reader, 64)
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
