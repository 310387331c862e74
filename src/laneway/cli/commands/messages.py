"""messages: list a page of messages; cancel."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from laneway.cli.acting import acting
from laneway.cli.confirm import confirm
from laneway.cli.connect import open_queue
from laneway.cli.exits import Code
from laneway.cli.hints import no_match
from laneway.cli.options import Json, Limit, OnlyChannel, OnlyKind, OnlyQueue, Schema, Url, Yes
from laneway.cli.output import Column, emit_all, printable, say, table
from laneway.cli.times import age

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


class MessageState(StrEnum):
    WAITING = "waiting"
    SCHEDULED = "scheduled"
    LEASED = "leased"
    DEAD = "dead"


def messages(
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    state: Annotated[
        MessageState | None,
        typer.Option(
            "--state", "-s", help="Only in this state; without it, dead letters are not listed."
        ),
    ] = None,
    limit: Limit = 50,
    after: Annotated[int, typer.Option(min=0, help="Continue after this message id.")] = 0,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List messages that have not ended, page by page."""
    with open_queue(url, schema) as client:
        found = client.messages(
            queue=queue,
            channel=channel,
            kind=kind,
            state=None if state is None else state.value,
            limit=limit,
            after=after,
        )
        empty = None if found else no_match(client, "message", queue)
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
    if found.next is not None:
        say(f"There may be more: continue with --after {found.next}")
    elif empty:
        say(empty)


def cancel(
    ids: Annotated[list[int], typer.Argument(help="Ids of the messages.", min=1)],
    running: Annotated[
        bool, typer.Option("--running", help="Also ask workers to stop those that run.")
    ] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Cancel messages that are waiting or scheduled; with --running also those that run.

    A worker learns within 10 seconds that it is to stop a handler.
    """
    with open_queue(url, schema) as client:
        for id in ids[:_PREVIEW]:
            info = client.message(id)
            found = (
                f"{info.queue}/{info.channel}  {info.state}"
                if info
                else "has ended or never existed"
            )
            say(printable(f"  {id}  {found}"))
        confirm(f"Cancel {len(ids)} message{'s' if len(ids) > 1 else ''}?", yes)
        answers = acting(client).cancel(ids, running=running)
    if as_json:
        emit_all(answers)
    else:
        table((Column("id", right=True), Column("status")), [(a.id, a.status) for a in answers])
    done = sum(answer.status == "cancelled" for answer in answers)
    asked = sum(answer.status == "requested" for answer in answers)
    say(f"Cancelled {done} of {len(answers)}." + (f" Asked to stop: {asked}." if asked else ""))
    if done + asked < len(answers):
        raise typer.Exit(Code.NOTHING)
