"""events: follow what happens to messages; wait: until one has ended."""

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .connect import open_queue
from .exits import Code
from .options import Json, OnlyChannel, OnlyKind, OnlyQueue, Schema, Url
from .output import emit, printable, say
from .show import MessageId
from .times import length

if TYPE_CHECKING:
    from penstock import Event


def events(
    what: Annotated[
        list[str] | None,
        typer.Option("--what", "-w", help="Only published, claimed, dead …; may be repeated."),
    ] = None,
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after so many.")
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Follow what happens to messages, as it is committed.

    While somebody follows, every verb writes a little more. Says "missed" after a lost connection.
    """
    wanted: Any = what or None
    with open_queue(url, schema) as client:
        found = client.events(
            what=wanted,
            queues=None if queue is None else [queue],
            channels=None if channel is None else [channel],
            kinds=None if kind is None else [kind],
        )
        with found:
            if sys.stderr.isatty():
                say("Following what happens; Ctrl-C stops.")
            for event in islice(found, count):
                emit(event) if as_json else typer.echo(_line(event))
                sys.stdout.flush()


def wait(
    message_id: MessageId,
    timeout: Annotated[
        str | None, typer.Option(help="Give up after so long: 30s.", show_default=False)
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Wait until a message has ended.

    Exit code: 0 completed, 1 ended otherwise (a dead letter too), or not in time.
    """
    with open_queue(url, schema) as client:
        ending = client.wait(message_id, None if timeout is None else length(timeout))
    if as_json:
        emit(ending)
    else:
        why = " ".join(filter(None, (ending.reason, ending.error_type, ending.error)))
        typer.echo(printable("  ".join(filter(None, (ending.outcome, why)))))
    if ending.outcome != "completed":
        raise typer.Exit(Code.FAILED)


def _line(event: "Event") -> str:
    moment = "" if event.at is None else event.at.astimezone().strftime("%H:%M:%S")
    if event.message_id is None:
        return f"{moment}  {event.what}".strip()
    where = f"{event.queue}/{event.channel}"
    parts = (moment, f"{event.what:<10}", where, str(event.message_id), event.kind)
    return printable("  ".join(filter(None, parts)))
