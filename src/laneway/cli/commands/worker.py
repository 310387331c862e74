"""worker: run a worker that a module defines."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli.exits import Code
from laneway.cli.options import Json, Schema, Url
from laneway.cli.output import emit, say
from laneway.cli.times import length
from laneway.cli.worker_target import load_worker

if TYPE_CHECKING:
    from laneway import Worker


def worker(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="MODULE[:NAME]...",
            help="What to run: a module with all of its workers and tasks, or one of them by its "
            "name, e.g. jobs:worker.",
            show_default=False,
        ),
    ],
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            "-q",
            help="Serve this queue instead of the worker's own; may be repeated.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            help="Max messages handled at the same time, instead of the worker's own limit.",
        ),
    ] = None,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Restart when a .py file below the current folder changes."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether the worker can start.")
    ] = False,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", "--once", help="Stop when no message can be claimed.")
    ] = False,
    max_messages: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many messages.")
    ] = None,
    max_runtime: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop after this time, e.g. 1h.")
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /livez, /readyz and /metrics on this port."),
    ] = None,
    health_host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where they listen: the loopback by default, 0.0.0.0 for every network.",
        ),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Run the handlers on Spark executors.")
    ] = False,
    master: Annotated[
        str, typer.Option(help="With --spark: the Spark master; spark://… or sc://… is a cluster.")
    ] = "local[*,4]",
    stream: Annotated[
        str | None,
        typer.Option(help="With --spark: the stream's name; the queue's name by default."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="With --spark: messages per claim.")] = 1000,
    per_task: Annotated[int, typer.Option(min=1, help="With --spark: messages per task.")] = 50,
    url: Url = None,
    schema: Schema = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    as_json: Json = False,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C.

    It serves all that the modules define, in one process: laneway worker shop.jobs shop.mail.
    Options that are not given are those of the first worker. Modules that have tasks but neither a
    worker nor a client get a worker on --url.

    On the first signal it lets running handlers finish and gives the other messages back; on the
    second it stops at once. With --json the log is JSON too. With --spark the executors must be
    able to import the worker's module, and spark-submit overrides --master.
    """
    if reload:
        if check or spark:
            raise typer.BadParameter("--reload cannot be combined with --check or --spark")
        from laneway.cli.reload import run_with_reload

        raise typer.Exit(run_with_reload([word for word in sys.argv[1:] if word != "--reload"]))
    found = load_worker(targets, url, schema)
    found.override(
        queues=queues or None,
        concurrency=concurrency,
        health_port=health_port,
        health_host=health_host,
    )
    if check:
        _check(" ".join(targets), found, as_json)
        return
    from laneway.cli.logs import log_to_stderr

    log_to_stderr(verbose=verbose, as_json=as_json)
    if spark:
        if max_messages is not None or max_runtime is not None:
            raise typer.BadParameter("--max-messages and --max-runtime do not work with --spark")
        from laneway.cli.spark_worker import run_on_spark

        counts = run_on_spark(found, master, stream, until_empty, batch, per_task)
        if as_json:
            emit(counts)
        return
    from laneway.cli.reload import stop_with_parent

    stop_with_parent()
    found.run(
        until_empty=until_empty,
        max_messages=max_messages,
        max_runtime=None if max_runtime is None else length(max_runtime),
    )


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
        say(f"laneway: {problem}")
    if problems:
        raise typer.Exit(Code.FAILED)
    say(f"{target} can start: queues {', '.join(found.queues)}; kinds {', '.join(found.kinds)}.")
