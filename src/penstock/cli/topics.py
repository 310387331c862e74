"""topics: who gets copies of what; subscribe, unsubscribe."""

from typing import Annotated

import typer

from .connect import open_queue
from .exits import Code, Nouns
from .options import InQueue, Json, Schema, Url
from .output import Column, emit, emit_all, say, table

app = typer.Typer(cls=Nouns, help="Topics: list, subscribe, unsubscribe.", rich_markup_mode=None)

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
        say("Nobody is subscribed to anything.")


@app.command()
def subscribe(
    topic: Topic,
    queue: InQueue = None,
    channel: Annotated[
        str | None, typer.Option("--channel", "-c", help="Instead of the published one.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", help="Instead of the published one.")
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Let a queue have a copy of what is published from now on."""
    with open_queue(url, schema, queue) as client:
        client.topic(topic).subscribe(channel=channel, kind=kind)
    if as_json:
        emit({"topic": topic, "queue": client.name, "channel": channel, "kind": kind})
    say(f"Queue {client.name!r} gets copies of topic {topic!r}.")


@app.command()
def unsubscribe(
    topic: Topic,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Let a queue have no more copies; those it has stay."""
    with open_queue(url, schema, queue) as client:
        done = client.topic(topic).unsubscribe()
    if as_json:
        emit({"topic": topic, "queue": client.name, "unsubscribed": done})
    if not done:
        say(f"Queue {client.name!r} is not subscribed to topic {topic!r}.")
        raise typer.Exit(Code.NOTHING)
    say(f"Queue {client.name!r} gets no more copies of topic {topic!r}.")
