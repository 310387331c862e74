"""Exit codes, and the one place that turns errors into them."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from penstock.errors import InvalidInput, PenstockError

from .output import say
from .streams import OutputLost


class Code(IntEnum):
    """What a script can rely on; see docs/reference/cli.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    """Nothing was found or done; for doctor: warnings and no failure."""
    INTERRUPTED = 130


class Commands(TyperGroup):
    """Errors are one sentence on stderr and a code, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PenstockError as error:
            say(f"penstock: {error}")
            wrong = isinstance(error, InvalidInput)
            raise typer.Exit(Code.USAGE if wrong else Code.FAILED) from error
        except (typer.Exit, OutputLost):
            raise
        except Exception as error:
            from penstock.spark.faults import is_sparks, reason

            if not is_sparks(error):
                raise
            say(f"penstock: {reason(error)}")
            raise typer.Exit(Code.FAILED) from None


class Nouns(Commands):
    """A group whose plain form lists: ``penstock dead --queue emails`` is ``dead list …``."""

    def parse_args(self, ctx: Any, args: Sequence[str]) -> list[str]:
        words = list(args)
        if not words or (words[0].startswith("-") and words[0] not in ctx.help_option_names):
            words.insert(0, "list")
        return super().parse_args(ctx, words)
