"""topics: list, subscribe, unsubscribe."""

from typing import Annotated

import typer

from laneway.cli.connect import acting, open_queue
from laneway.cli.dialog import note_unknown_queue
from laneway.cli.exits import Code, ListGroup
from laneway.cli.options import InQueue, Json, Schema, Url
from laneway.cli.output import Column, emit, emit_all, say, table

app = typer.Typer(
    cls=ListGroup, help="List topics; subscribe and unsubscribe queues.", rich_markup_mode=None
)

_COLUMNS = (Column("topic"), Column("queue"), Column("channel"), Column("kind"))

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


@app.command("list")
def list_topics(url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """List subscriptions, by topic and queue."""
    with open_queue(url, schema) as client:
        found = client.subscriptions()
    if as_json:
        emit_all(found)
    else:
        table(_COLUMNS, [(s.topic, s.queue, s.channel, s.kind) for s in found])
    if not found:
        say("There are no subscriptions.")


@app.command()
def subscribe(
    topic: Topic,
    queue: InQueue = None,
    channel: Annotated[
        str | None,
        typer.Option(
            "--channel", "-c", help="Channel of the copies, instead of the published one."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", "-k", help="Kind of the copies, instead of the published one."),
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Copy messages published to a topic from now on into a queue."""
    with open_queue(url, schema, queue) as client:
        note_unknown_queue(client, queue, may_be_new=True)
        acting(client).subscribe(topic, channel=channel, kind=kind)
    if as_json:
        emit({"topic": topic, "queue": client.name, "channel": channel, "kind": kind})
    say(f"Queue {client.name!r} is subscribed to topic {topic!r}.")


@app.command()
def unsubscribe(
    topic: Topic,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Stop copying a topic into a queue; existing copies stay."""
    with open_queue(url, schema, queue) as client:
        done = acting(client).unsubscribe(topic)
    if as_json:
        emit({"topic": topic, "queue": client.name, "unsubscribed": done})
    if not done:
        say(f"Queue {client.name!r} is not subscribed to topic {topic!r}.")
        raise typer.Exit(Code.NOTHING)
    say(f"Queue {client.name!r} is no longer subscribed to topic {topic!r}.")
