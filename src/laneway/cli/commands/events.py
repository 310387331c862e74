"""events: follow what happens to messages; wait: until a message has ended."""

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import open_queue
from laneway.cli.exits import Code
from laneway.cli.options import Json, OnlyChannel, OnlyKind, OnlyQueue, Schema, Url
from laneway.cli.output import emit, printable, say
from laneway.cli.times import length

from .show import MessageId

if TYPE_CHECKING:
    from laneway import Event


def events(
    what: Annotated[
        list[str] | None,
        typer.Option(
            "--what", "-w", help="Only these events: published, claimed, dead …; may be repeated."
        ),
    ] = None,
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after this many.")
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Follow what happens to messages, as it is committed.

    Costs every operation a little extra while it runs. Prints "missed" after a lost connection.
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
                say("Following events; stop with Ctrl-C.")
            for event in islice(found, count):
                emit(event) if as_json else typer.echo(_line(event))
                sys.stdout.flush()


def wait(
    message_id: MessageId,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Give up after this time, e.g. 30s.", show_default=False
        ),
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Wait until a message has ended.

    Exit code: 0 completed; 1 ended otherwise, became a dead letter, or timed out.
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


def result(
    message_id: MessageId,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="How long to wait for the end, e.g. 30s.")
    ] = "0s",
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Print what the handler of a message returned, if it was published with --keep-result.

    Exit code: 0 printed; 1 the message has not ended, did not complete, or its result is not kept.
    """
    from laneway.to_json import plain

    with open_queue(url, schema) as client:
        value = client.result(message_id, timeout=length(timeout))
    if isinstance(value, bytes) and not as_json:
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
    elif isinstance(value, str) and not as_json:
        typer.echo(value)
    else:
        emit(value if isinstance(value, bytes) else plain(value))


def _line(event: "Event") -> str:
    moment = "" if event.at is None else event.at.astimezone().strftime("%H:%M:%S")
    if event.message_id is None:
        return f"{moment}  {event.what}".strip()
    where = f"{event.queue}/{event.channel}"
    parts = (moment, f"{event.what:<10}", where, str(event.message_id), event.kind)
    return printable("  ".join(filter(None, parts)))
