"""schedules: list, pause, resume, run, remove."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import acting, open_queue
from laneway.cli.dialog import confirm, existing, note_unknown_queue
from laneway.cli.exits import Code, ListGroup
from laneway.cli.options import InQueue, Json, Limit, OnlyQueue, Schema, Url, Yes, age, short
from laneway.cli.output import Column, emit, emit_all, say, table

if TYPE_CHECKING:
    from laneway import Queue, Schedule

app = typer.Typer(
    cls=ListGroup, help="List, pause, resume, run and remove schedules.", rich_markup_mode=None
)

_COLUMNS = (
    Column("queue"),
    Column("name"),
    Column("when"),
    Column("zone", wide=100),
    Column("next", right=True),
    Column("last", right=True, wide=70),
    Column("fired", right=True, wide=80),
    Column("error", wide=60),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


@app.command("list")
def list_schedules(
    queue: OnlyQueue = None,
    limit: Limit = 1000,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List schedules, with their next run and last error."""
    with open_queue(url, schema) as client:
        note_unknown_queue(client, queue)
        found = client.schedules.list(queue=queue, limit=limit)
    if as_json:
        emit_all(map(_document, found))
    else:
        now = datetime.now(UTC)
        table(_COLUMNS, [_row(schedule, now) for schedule in found])
    if not found:
        say("There are no schedules.")


@app.command()
def pause(
    name: Name, queue: InQueue = None, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Pause a schedule."""
    with open_queue(url, schema, queue) as client, _existing(client, name):
        _report(acting(client).pause_schedule(name), as_json)


@app.command()
def resume(
    name: Name, queue: InQueue = None, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Resume a schedule; runs missed meanwhile are skipped."""
    with open_queue(url, schema, queue) as client, _existing(client, name):
        _report(acting(client).resume_schedule(name), as_json)


@app.command()
def run(
    name: Name, queue: InQueue = None, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Publish a schedule's message now; its next run stays as planned."""
    with open_queue(url, schema, queue) as client, _existing(client, name):
        results = acting(client).run_schedule(name)
    for result in results:
        emit(result) if as_json else typer.echo(result.id)
    if any(result.status == "existing" for result in results):
        say("A message with its key exists already; nothing was published for it.")


@app.command()
def remove(
    name: Name,
    yes: Yes = False,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Remove a schedule; messages that it published stay."""
    with open_queue(url, schema, queue) as client, _existing(client, name):
        found = client.schedules.get(name)
        confirm(f"Remove schedule {name!r} of queue {found.queue!r} ({_when(found)})?", yes)
        acting(client).remove_schedule(name)
    if as_json:
        emit({"queue": found.queue, "name": name, "removed": True})
    say(f"Removed {name!r}.")


@contextmanager
def _existing(client: "Queue", name: str) -> Iterator[None]:
    """Says which schedules there are, if there is none of this name."""
    from laneway.errors import ScheduleMissing

    try:
        yield
    except ScheduleMissing:
        there = client.schedules.list()
        here = [schedule.name for schedule in there if schedule.queue == client.name]
        elsewhere = [schedule.queue for schedule in there if schedule.name == name]
        hint = existing("schedules", name, here)
        if elsewhere:
            hint = f"queue {elsewhere[0]!r} has one, so add --queue {elsewhere[0]}"
        say(f"laneway: queue {client.name!r} has no schedule {name!r}: {hint}")
        raise typer.Exit(Code.NOTHING) from None


def _row(schedule: "Schedule", now: datetime) -> tuple[object, ...]:
    return (
        schedule.queue,
        schedule.name,
        _when(schedule),
        schedule.zone,
        "paused" if schedule.paused else age(schedule.next_at, now),
        age(schedule.last_at, now),
        schedule.fired,
        schedule.error,
    )


def _when(schedule: "Schedule") -> str:
    if schedule.cron is not None:
        return schedule.cron
    return "" if schedule.every is None else f"every {short(schedule.every.total_seconds())}"


def _document(schedule: "Schedule") -> dict[str, Any]:
    values = asdict(schedule)
    values["payload_size"] = len(values.pop("payload"))
    return values


def _report(schedule: "Schedule", as_json: bool) -> None:
    if as_json:
        emit(_document(schedule))
        return
    next_at = schedule.next_at.astimezone().isoformat(sep=" ", timespec="seconds")
    state = "is paused" if schedule.paused else f"runs next at {next_at}"
    say(f"{schedule.name!r} of queue {schedule.queue!r} {state}.")
