"""All commands in one application."""

from typing import Annotated

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


app.command()(schema.install)
app.command()(schema.upgrade)
app.command()(schema.sql)
app.command()(schema.version)
app.command()(worker.worker)
app.command()(worker.workers)
app.command()(publish.publish)
app.command()(messages.messages)
app.command()(messages.show)
app.command()(messages.history)
app.command()(messages.cancel)
app.command("run-now")(control.run_now)
app.command()(control.pause)
app.command()(control.resume)
app.command()(control.fairness)
app.command()(control.limits)
app.command("shared-limits")(control.shared_limits)
app.add_typer(channels.app, name="channels")
app.add_typer(dead.app, name="dead")
app.command("redrive", hidden=True)(dead.redrive)
app.add_typer(schedules.app, name="schedules")
app.add_typer(topics.app, name="topics")
app.add_typer(flows.app, name="flows")
app.add_typer(lake.app, name="lake")
app.command()(stats.stats)
app.command()(events.tail)
app.command()(events.events)
app.command()(events.wait)
app.command()(events.result)
app.command()(stats.top)
app.command()(serve.dashboard)
app.command()(control.audit)
app.command()(schema.doctor)
app.command()(serve.exporter)
app.add_typer(dev.app, name="dev")
app.command()(dev.bench)
app.command()(dev.demo)
app.command()(dev.chaos)
