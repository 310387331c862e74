"""events and tail: follow what happens; wait and result: until a message has ended."""

import sys
import time
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import open_queue
from laneway.cli.dialog import note_unknown_queue
from laneway.cli.exits import Code
from laneway.cli.options import Json, OnlyChannel, OnlyKind, OnlyQueue, Schema, Url, age, length
from laneway.cli.output import emit, printable, say

from .messages import MessageId

if TYPE_CHECKING:
    from laneway import Event, HistoryEntry


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
    """Follow events of messages as they are committed.

    Every operation costs a little more while this runs. Prints "missed" after a lost connection.
    """
    wanted: Any = what or None
    with open_queue(url, schema) as client:
        note_unknown_queue(client, queue)
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

    Exit code: 0 if it completed; 1 if it ended otherwise, or the wait timed out.
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
        str,
        typer.Option(metavar="DURATION", help="How long to wait for the message to end, e.g. 30s."),
    ] = "0s",
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Print the result of a message, if it is kept.

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


_PAGE = 1000
_GOOD = frozenset(("completed", "deferred", "given_back"))


def tail(
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    failures: Annotated[bool, typer.Option("--failures", help="Only failures.")] = False,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after this many.")
    ] = None,
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between polls.")] = 0.5,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Follow attempts as they end, until Ctrl-C.

    No attempt is skipped, so output waits for write transactions that are still open.
    """
    with open_queue(url, schema) as client:
        note_unknown_queue(client, queue)
        kept = client.settings().history
        if kept != "all":
            say(f"Not all attempts are shown: this schema keeps history {kept!r} only.")
        position = client.history_since().position
        if sys.stderr.isatty():
            say("Following attempts; stop with Ctrl-C.")
        left = count
        while left is None or left > 0:
            entries, position = client.history_since(position, limit=_PAGE)
            for entry in entries:
                wanted = _matches(entry, queue, channel, kind, failures)
                if not wanted or left == 0:
                    continue
                emit(entry) if as_json else typer.echo(_tail_line(entry))
                left = None if left is None else left - 1
            sys.stdout.flush()
            if len(entries) < _PAGE and left != 0:
                time.sleep(every)


def _matches(
    entry: "HistoryEntry", queue: str | None, channel: str | None, kind: str | None, failures: bool
) -> bool:
    return (
        queue in (None, entry.queue)
        and channel in (None, entry.channel)
        and kind in (None, entry.kind)
        and not (failures and entry.outcome in _GOOD)
    )


def _tail_line(entry: "HistoryEntry") -> str:
    took = "" if entry.claimed_at is None else f" in {age(entry.claimed_at, entry.ended_at)}"
    why = " ".join(filter(None, (entry.reason, entry.error_type, entry.error)))
    parts = [
        _time(entry.ended_at),
        f"{entry.outcome:<10}",
        f"{entry.queue}/{entry.channel}",
        f"{entry.message_id}",
        f"{entry.kind} try {entry.attempt}{took}".strip(),
        "DEAD" if entry.dead else "",
        why,
    ]
    return printable("  ".join(filter(None, parts)))


def _time(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")
