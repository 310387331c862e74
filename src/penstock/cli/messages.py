"""messages: a page of them, by filters; cancel."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from .confirm import confirm
from .connect import open_queue
from .exits import Code
from .options import Json, Limit, OnlyChannel, OnlyKind, OnlyQueue, Schema, Url, Yes
from .output import Column, emit_all, printable, say, table
from .times import age

_COLUMNS = (
    Column("id", right=True),
    Column("state"),
    Column("queue"),
    Column("channel"),
    Column("kind", wide=80),
    Column("prio", right=True, wide=100),
    Column("try", right=True, wide=70),
    Column("age", right=True),
    Column("due", right=True, wide=90),
    Column("bytes", right=True, wide=110),
    Column("worker", wide=130),
)


_PREVIEW = 5


class State(StrEnum):
    WAITING = "waiting"
    SCHEDULED = "scheduled"
    LEASED = "leased"
    DEAD = "dead"


def messages(
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    state: Annotated[
        State | None, typer.Option("--state", "-s", help="Only in this state; dead only if asked.")
    ] = None,
    limit: Limit = 50,
    after: Annotated[int, typer.Option(min=0, help="The page after this message's id.")] = 0,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List messages that have not ended, a page at a time."""
    with open_queue(url, schema) as client:
        found = client.messages(
            queue=queue,
            channel=channel,
            kind=kind,
            state=None if state is None else state.value,
            limit=limit,
            after=after,
        )
    if as_json:
        emit_all(found)
    else:
        now = datetime.now(UTC)
        rows = [
            (
                info.id,
                info.state,
                info.queue,
                info.channel,
                info.kind,
                info.priority,
                info.attempt,
                age(info.published_at, now),
                age(info.until or info.due, now),
                info.payload_size,
                info.worker,
            )
            for info in found
        ]
        table(_COLUMNS, rows)
    if not found:
        say("No message matches.")
    elif len(found) == limit:
        say(f"There may be more: --after {found[-1].id}")


def cancel(
    ids: Annotated[list[int], typer.Argument(help="Messages to end before they start.", min=1)],
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """End waiting messages without working on them."""
    with open_queue(url, schema) as client:
        for id in ids[:_PREVIEW]:
            info = client.message(id)
            found = (
                f"{info.queue}/{info.channel}  {info.state}" if info else "has ended, or never was"
            )
            say(printable(f"  {id}  {found}"))
        confirm(f"Cancel {len(ids)} message{'s' if len(ids) > 1 else ''}?", yes)
        answers = client.cancel(ids)
    if as_json:
        emit_all(answers)
    else:
        table((Column("id", right=True), Column("status")), [(a.id, a.status) for a in answers])
    done = sum(answer.status == "cancelled" for answer in answers)
    say(f"Cancelled {done} of {len(answers)}.")
    if done < len(answers):
        raise typer.Exit(Code.NOTHING)
