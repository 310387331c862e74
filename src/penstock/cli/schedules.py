"""schedules: list, pause, resume, run now, remove."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .confirm import confirm
from .connect import open_queue
from .exits import Nouns
from .options import InQueue, Json, Limit, OnlyQueue, Schema, Url, Yes
from .output import Column, emit, emit_all, say, table
from .times import age, short

if TYPE_CHECKING:
    from penstock import Schedule

app = typer.Typer(
    cls=Nouns, help="Schedules: list, pause, resume, run, remove.", rich_markup_mode=None
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
    """List schedules, with what is wrong with them."""
    with open_queue(url, schema) as client:
        found = client.schedules.list(queue=queue, limit=limit)
    if as_json:
        emit_all(map(_document, found))
    else:
        now = datetime.now(UTC)
        table(_COLUMNS, [_row(schedule, now) for schedule in found])
    if not found:
        say("There is no schedule.")


@app.command()
def pause(
    name: Name, queue: InQueue = None, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Let no tick fire until it is resumed."""
    with open_queue(url, schema, queue) as client:
        _tell(client.schedules.pause(name), as_json)


@app.command()
def resume(
    name: Name, queue: InQueue = None, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Go on with the next tick from now."""
    with open_queue(url, schema, queue) as client:
        _tell(client.schedules.resume(name), as_json)


@app.command()
def run(
    name: Name, queue: InQueue = None, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Publish its message now; its ticks stay as they are."""
    with open_queue(url, schema, queue) as client:
        results = client.schedules.run(name)
    for result in results:
        emit(result) if as_json else typer.echo(result.id)
    if any(result.status == "existing" for result in results):
        say("A message with its key lives already; nothing was published there.")


@app.command()
def remove(
    name: Name,
    yes: Yes = False,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """End it; messages that it published stay."""
    with open_queue(url, schema, queue) as client:
        found = client.schedules.get(name)
        confirm(f"Remove schedule {name!r} of queue {found.queue!r} ({_when(found)})?", yes)
        client.schedules.remove(name)
    if as_json:
        emit({"queue": found.queue, "name": name, "removed": True})
    say(f"Removed {name!r}.")


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


def _tell(schedule: "Schedule", as_json: bool) -> None:
    if as_json:
        emit(_document(schedule))
        return
    next_at = schedule.next_at.astimezone().isoformat(sep=" ", timespec="seconds")
    state = "is paused" if schedule.paused else f"ticks next at {next_at}"
    say(f"{schedule.name!r} of queue {schedule.queue!r} {state}.")
