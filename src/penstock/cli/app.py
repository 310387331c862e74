"""All commands in one application."""

import typer

from . import (
    bench,
    channels,
    chaos,
    dead,
    demo,
    doctor,
    events,
    lake,
    messages,
    publish,
    schedules,
    schema,
    show,
    stats,
    tail,
    top,
    topics,
    worker,
)
from .exits import Commands

app = typer.Typer(
    cls=Commands,
    help="Durable multi-tenant message queues inside your database.",
    epilog="The database: --url, DATABASE_URL, or penstock.toml. Exit codes: 0 done, 1 failed, "
    "2 wrong usage, 3 nothing found, 130 interrupted.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # rich would cost more to load than everything else that help needs.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.command()(schema.install)
app.command()(schema.upgrade)
app.command()(schema.sql)
app.command()(schema.version)
app.command()(worker.worker)
app.command()(publish.publish)
app.command()(messages.messages)
app.command()(show.show)
app.command()(show.history)
app.command()(messages.cancel)
app.add_typer(channels.app, name="channels")
app.add_typer(dead.app, name="dead")
app.command("redrive", hidden=True)(dead.redrive)
app.add_typer(schedules.app, name="schedules")
app.add_typer(topics.app, name="topics")
app.add_typer(lake.app, name="lake")
app.command()(stats.stats)
app.command()(tail.tail)
app.command()(events.events)
app.command()(events.wait)
app.command()(top.top)
app.command()(doctor.doctor)
app.command()(bench.bench)
app.command()(demo.demo)
app.command()(chaos.chaos)
