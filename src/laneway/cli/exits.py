"""Exit codes, and the one place that turns errors into sentences for a shell and exit codes."""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from laneway.errors import InvalidInput, LanewayError
from laneway.spelling import meant_command, meant_option

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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as error:
            near = meant_command(args[0], self.list_commands(ctx))
            hint = f": did you mean {near!r}?" if near else ""
            error.message = f"no such command {args[0]!r}{hint}"
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            raise _refused(error) from None
        except LanewayError as error:
            say(f"laneway: {in_shell(error, ctx)}")
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
        text = _plain(error)
        say(f"laneway: {text}{_more(error, text)}")
    return typer.Exit(Code.USAGE)


# How the library that reads options says it, whichever version it is; and how people do.
_WORDING = (
    (r"^invalid value for (.*?): ", r"\1: "),
    (r"'(-[^']*)'", r"\1"),
    (r"^'(\w+)': ", r"\1: "),
    (r"^(--?[\w-]+) / -\w: ", r"\1: "),
    (r"Value error, ", ""),
    (r"Input should be a valid integer,? ?.*", "it must be a whole number"),
    (r"Input should be a valid number,? ?.*", "it must be a number"),
    (r"Input should be (greater|less) than or equal to (.*)", r"it must be at \1 \2"),
    (r"at greater", "at least"),
    (r"at less", "at most"),
    (r"(.*) is not a valid integer(?: range)?", r"\1 is not a whole number"),
    (r"(.*) is not a valid float(?: range)?", r"\1 is not a number"),
    (r"unexpected extra arguments?(?:\(s\))? \((.*)\)", r"more than it takes: \1"),
)


def _plain(error: Any) -> str:
    wrong = getattr(error, "option_name", None)
    if wrong and error.ctx is not None and hasattr(error, "possibilities"):
        if _of_a_command(error):
            return f"no such option: {wrong}"
        return f"no such option: {wrong}{_meant(wrong, error.ctx)}"
    text = error.format_message()
    text = text[:1].lower() + text[1:].removesuffix(".")
    for pattern, words in _WORDING:
        text = re.sub(pattern, words, text)
    return str(text)


def _meant(wrong: str, ctx: Any) -> str:
    known = {
        option.lstrip("-").replace("-", "_"): option
        for parameter in ctx.command.get_params(ctx)
        for option in parameter.opts
        if option.startswith("--")
    }
    near = meant_option(wrong.lstrip("-").replace("-", "_"), known)
    return f": did you mean {known[near]}?" if near else ""


def _of_a_command(error: Any) -> bool:
    """Whether an option was written before the command that has it."""
    option = getattr(error, "option_name", None)
    return error.ctx.parent is None and option in set(_options(error.ctx.command))


def _more(error: Any, text: str) -> str:
    """What to do about it."""
    if text.endswith("?") or error.ctx is None:
        return ""
    command = error.ctx.command_path
    if _of_a_command(error):
        return f": write options after the command, as in {command} stats {error.option_name}"
    return f"; see {command} --help"


# What the library says to programs, and the shell says otherwise.
_CALLS = re.compile(r"queue\.(install|upgrade)\(\) or `?(laneway \w+)`?")
_ENGINES = re.compile(r", by which str\(engine\.url\) hides it: use .*|; for an engine of .*")
_ASSIGNED = re.compile(r"\b([a-z]+(?:_[a-z]+)*)=(?:\"(\w*)\"|'(\w*)'|(?!\w))")
_NAMED = re.compile(r"(?<![\w.'\"-])([a-z]+(?:_[a-z]+)+)(?![\w'\"(=])")


def in_shell(error: object, ctx: Any = None) -> str:
    """An error's text without advice in Python: ``publish with keep_result=`` is ``publish with
    --keep-result``. ``ctx`` is that of the command, if there is one."""
    text = _CALLS.sub(r"\2", str(error))
    text = _ENGINES.sub(": write the password itself", text)
    options = set() if ctx is None else set(_options(ctx.find_root().command))

    def written(found: re.Match[str]) -> str:
        name, *values = found.groups()
        option = f"--{name.replace('_', '-')}"
        if option not in options:
            return found[0]
        return " ".join([option, *filter(None, values)])

    return _NAMED.sub(written, _ASSIGNED.sub(written, text))


def _options(command: Any) -> Iterator[str]:
    """Of the command and of all below it."""
    for parameter in command.params:
        yield from parameter.opts
    for below in getattr(command, "commands", {}).values():
        yield from _options(below)


class ListGroup(CommandGroup):
    """A group whose default command is list: ``laneway dead -q x`` is ``dead list -q x``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = list(args)
        if not words or (words[0].startswith("-") and words[0] not in ctx.help_option_names):
            words.insert(0, "list")
        return super().parse_args(ctx, words)
