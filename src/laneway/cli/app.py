"""All commands in one application."""

from typing import Annotated, Any

import typer

from .commands import (
    channels,
    control,
    dead,
    dev,
    events,
    flows,
    lake,
    messages,
    publish,
    schedules,
    schema,
    serve,
    stats,
    topics,
    worker,
)
from .exits import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    help="Durable, multi-tenant message queues in the SQL database you already run.",
    epilog="The database is given by --url, DATABASE_URL or laneway.toml. Exit codes: 0 done, "
    "1 failed, 2 wrong usage, 3 nothing found, 130 interrupted.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # rich would cost more to load than everything else that help needs.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Print the version.",
            callback=schema.print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """The options before the command."""


def _group(title: str, **commands: Any) -> None:
    """A heading of the help, and what stands below it, by name."""
    for name, command in commands.items():
        shown_as = name.replace("_", "-")
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=shown_as, rich_help_panel=title)
        else:
            app.command(shown_as, rich_help_panel=title)(command)


_group(
    "Set up and work",
    install=schema.install,
    upgrade=schema.upgrade,
    sql=schema.sql,
    worker=worker.worker,
    publish=publish.publish,
    schedules=schedules.app,
    topics=topics.app,
)
_group(
    "See what happens",
    stats=stats.stats,
    top=stats.top,
    workers=worker.workers,
    messages=messages.messages,
    show=messages.show,
    history=messages.history,
    flows=flows.app,
    tail=events.tail,
    events=events.events,
    wait=events.wait,
    result=events.result,
    dashboard=serve.dashboard,
)
_group(
    "Operate",
    doctor=schema.doctor,
    dead=dead.app,
    cancel=messages.cancel,
    run_now=control.run_now,
    pause=control.pause,
    resume=control.resume,
    channels=channels.app,
    limits=control.limits,
    shared_limits=control.shared_limits,
    fairness=control.fairness,
    audit=control.audit,
    exporter=serve.exporter,
    lake=lake.app,
)
_group(
    "Develop",
    demo=dev.demo,
    dev=dev.app,
    bench=dev.bench,
    chaos=dev.chaos,
    version=schema.version,
)
app.command("redrive", hidden=True)(dead.redrive)
