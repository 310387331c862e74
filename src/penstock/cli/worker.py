"""worker: run a worker that a module defines."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from .exits import Code
from .options import Json
from .output import emit, printable, say

if TYPE_CHECKING:
    from penstock import Worker


def worker(
    target: Annotated[
        str, typer.Argument(metavar="MODULE:WORKER", help="Where it is: shop.jobs:worker")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether it could start.")
    ] = False,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", "--once", help="End once nothing is left to claim.")
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Run the handlers on Spark's executors.")
    ] = False,
    master: Annotated[
        str, typer.Option(help="With --spark: where; spark://… or sc://… is a cluster.")
    ] = "local[*,4]",
    stream: Annotated[
        str | None,
        typer.Option(help="With --spark: its name among others, else the queue's."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="With --spark: messages a claim.")] = 1000,
    per_task: Annotated[int, typer.Option(min=1, help="With --spark: messages a task.")] = 50,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    as_json: Json = False,
) -> None:
    """Run a worker until it is told to stop.

    SIGTERM or Ctrl-C lets handlers end and gives the rest back; a second one hurries. With --json
    log lines are JSON too. With --spark its handlers run on executors, where its module must be
    found; --master is not looked at under spark-submit.
    """
    found = load(target)
    if check:
        _check(target, found, as_json)
        return
    _log(verbose, as_json)
    if spark:
        from .spark_worker import run_on_spark

        counts = run_on_spark(found, master, stream, until_empty, batch, per_task)
        if as_json:
            emit(counts)
        return
    found.run(until_empty=until_empty)


def load(target: str) -> "Worker":
    """The worker that ``module:name`` names; the current folder is looked at first."""
    from penstock import Worker

    name, _, attribute = target.partition(":")
    if not name or not attribute:
        raise typer.BadParameter(f"{target!r}: write module:worker, as in shop.jobs:worker")
    found = getattr(_import(name), attribute, None)
    if not isinstance(found, Worker):
        what = "is not there" if found is None else f"is a {type(found).__name__}, no Worker"
        raise typer.BadParameter(f"{attribute!r} of module {name!r} {what}")
    return found


def _import(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # What the module itself fails to import is its author's to see, with the traceback.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(f"there is no module {error.name!r} here or installed") from None
    except KeyError as error:
        # What a module reads from the environment at its import is what one forgets most.
        if error.args[0] in os.environ or not str(error.args[0]).isupper():
            raise
        missing = f"{name} wants the environment variable {error.args[0]}: export it in this shell"
        raise typer.BadParameter(missing) from None


def _check(target: str, found: "Worker", as_json: bool) -> None:
    problems = found.check()
    if as_json:
        emit(
            {
                "worker": target,
                "queues": found.queues,
                "kinds": found.kinds,
                "problems": problems,
            }
        )
    for problem in problems:
        say(f"penstock: {problem}")
    if problems:
        raise typer.Exit(Code.FAILED)
    say(f"{target} can start: queues {', '.join(found.queues)}; kinds {', '.join(found.kinds)}.")


def _log(verbose: bool, as_json: bool) -> None:
    import logging

    from penstock.worker.logs import JsonFormatter

    class Lines(logging.Formatter):
        """A name in a message neither breaks the line nor commands the terminal."""

        def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802, theirs
            return printable(super().formatMessage(record))

    lines = Lines("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else lines)
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
