"""Exit codes, and the one place that turns errors into exit codes."""

from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from laneway.errors import InvalidInput, LanewayError

from .output import OutputLost, say

_UsageError: Any = typer.BadParameter.__mro__[1]  # Click's, or the one that Typer carries


class Code(IntEnum):
    """For scripts; documented in docs/reference/cli.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    """Nothing was found or done; for doctor: warnings but no failures."""
    INTERRUPTED = 130


class CommandGroup(TyperGroup):
    """Errors are one sentence on stderr and an exit code, not a traceback. The help lists commands
    below the headings that they were given."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = [(n, c) for n in self.list_commands(ctx) if not (c := self.commands[n]).hidden]
        widest = max((len(name) for name, _ in shown), default=0)
        headings = dict.fromkeys(_heading(command) for _, command in shown)
        for heading in headings:
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (
                            name.ljust(widest),
                            command.get_short_help_str(formatter.width - 6 - widest),
                        )
                        for name, command in shown
                        if _heading(command) == heading
                    ]
                )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            raise _refused(error) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            raise _refused(error) from None
        except LanewayError as error:
            say(f"laneway: {error}")
            wrong = isinstance(error, InvalidInput)
            raise typer.Exit(Code.USAGE if wrong else Code.FAILED) from error
        except (typer.Exit, OutputLost):
            raise
        except Exception as error:
            from laneway.spark.errors import is_sparks, reason

            if not is_sparks(error):
                raise
            say(f"laneway: {reason(error)}")
            raise typer.Exit(Code.FAILED) from None


def _heading(command: Any) -> str:
    given = getattr(command, "rich_help_panel", None)
    return given if isinstance(given, str) else "Commands"


def _refused(error: Any) -> Exception:
    """Says what is wrong with the command, in one line."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return error  # type: ignore[no-any-return]
    if isinstance(error, typer.BadParameter) and error.param is None:  # our own words
        hint = f"{error.param_hint}: " if error.param_hint else ""
        say(f"laneway: {hint}{error.message}")
    else:
        text = error.format_message()
        text = text[:1].lower() + text[1:].removesuffix(".")
        say(f"laneway: {text}{_more(error, text)}")
    return typer.Exit(Code.USAGE)


def _more(error: Any, text: str) -> str:
    """What to do about it."""
    if text.endswith("?") or error.ctx is None:
        return ""
    command = error.ctx.command_path
    if error.ctx.parent is None and (option := getattr(error, "option_name", None)):
        return f": write options after the command, as in {command} stats {option}"
    return f"; see {command} --help"


class ListGroup(CommandGroup):
    """A group whose default command is list: ``laneway dead -q x`` is ``dead list -q x``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = list(args)
        if not words or (words[0].startswith("-") and words[0] not in ctx.help_option_names):
            words.insert(0, "list")
        return super().parse_args(ctx, words)
