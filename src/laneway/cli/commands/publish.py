"""publish: one message from the command line or a file, or one message per line."""

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli.bulk_publish import (
    BulkPublisher,
    PayloadFormat,
    PublishCounts,
    RejectsLost,
    most_input,
    open_input,
    open_rejects,
    parsed,
    progress,
    read_batches,
    read_message,
)
from laneway.cli.connect import open_queue
from laneway.cli.dialog import note_unknown_queue
from laneway.cli.exits import Code
from laneway.cli.options import InQueue, Json, Schema, Url, length, moment
from laneway.cli.output import OutputLost, emit, say
from laneway.errors import DatabaseFailed, PayloadTooLarge

if TYPE_CHECKING:
    from laneway import NewMessage, Queue

# As laneway.contract has it, which loads the model: help does without.
_HIGHEST_PRIORITY = 200


class KeyScope(Enum):
    KIND = "kind"
    CHANNEL = "channel"
    QUEUE = "queue"


class OnDuplicate(Enum):
    KEEP = "keep"
    REPLACE = "replace"
    DEBOUNCE = "debounce"


def publish(
    payload: Annotated[
        str | None, typer.Argument(help="The payload: JSON, unless --as is given.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", help="Read the payload from this file; - is stdin."),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(
            "--lines", "-l", help="Publish one message per line of this file; - is stdin."
        ),
    ] = None,
    form: Annotated[
        PayloadFormat,
        typer.Option(
            "--as", help='Payload format. message: {"payload": …, "channel": …, "key": …}.'
        ),
    ] = PayloadFormat.JSON,
    channel: Annotated[
        str, typer.Option("--channel", "-c", help="The channel, e.g. one per tenant.")
    ] = "default",
    queue: InQueue = None,
    kind: Annotated[
        str, typer.Option("--kind", "-k", help="The message's kind; selects its handler.")
    ] = "",
    key: Annotated[
        str | None,
        typer.Option(help="Deduplication key; if it is taken, --on-duplicate decides."),
    ] = None,
    key_scope: Annotated[
        KeyScope,
        typer.Option(
            help="Where the key is unique: among messages of this kind in the channel, in the "
            "channel, or in the whole queue."
        ),
    ] = KeyScope.KIND,
    key_window: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long the key stays taken after its message has ended, e.g. 1h.",
        ),
    ] = None,
    on_duplicate: Annotated[
        OnDuplicate,
        typer.Option(
            help="If a message with this key exists: keep it, replace it while it waits, or also "
            "move its due time (debounce)."
        ),
    ] = OnDuplicate.KEEP,
    debounce_for: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="With --on-duplicate debounce: the longest total delay, e.g. 5m.",
        ),
    ] = None,
    priority: Annotated[
        int, typer.Option(min=0, max=_HIGHEST_PRIORITY, help="Higher priorities go first.")
    ] = 0,
    delay: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Delay before the message becomes due, e.g. 5m."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="When the message becomes due, e.g. 2026-01-31T08:00+01:00."
        ),
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="The message expires if it has not started after this time, e.g. 1h.",
        ),
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(min=1, help="Attempts without progress before it becomes a dead letter."),
    ] = None,
    keep_result: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How long the handler's result is kept, e.g. 1h."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="A shared limit that the message counts against; up to four times."),
    ] = None,
    content_type: Annotated[
        str | None, typer.Option(help="Content type, instead of the one implied by --as.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", help="Header, as name=value; may be repeated."),
    ] = None,
    skip: Annotated[int, typer.Option(min=0, help="With --lines: skip this many lines.")] = 0,
    rejects: Annotated[
        Path | None, typer.Option(help="With --lines: write bad lines to this file.")
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Publish a message, or one message per line of a file.

    Bad lines are reported and skipped; the others are published, and the exit code is 1.
    """
    from laneway import NewMessage

    if sum(given is not None for given in (payload, file, lines)) != 1:
        raise typer.BadParameter(
            "give a payload, --file or --lines, exactly one of them (- is stdin)"
        )
    if lines is None and (skip or rejects):
        raise typer.BadParameter("--skip and --rejects need --lines")
    if key_scope is not KeyScope.KIND and key is None and form is not PayloadFormat.MESSAGE:
        raise typer.BadParameter("--key-scope needs --key or --as message")
    if key_window is not None and key is None and form is not PayloadFormat.MESSAGE:
        raise typer.BadParameter("--key-window needs --key or --as message")
    if on_duplicate is not OnDuplicate.KEEP and key is None and form is not PayloadFormat.MESSAGE:
        raise typer.BadParameter("--on-duplicate needs --key or --as message")
    pattern = NewMessage(
        None,
        channel=channel,
        kind=kind,
        key=key,
        key_scope=key_scope.value,
        key_window=None if key_window is None else length(key_window),
        headers=_headers(header or []),
        priority=priority,
        delay=None if delay is None else length(delay),
        at=None if at is None else moment(at),
        expires_in=None if expires_in is None else length(expires_in),
        max_attempts=max_attempts,
        content_type=content_type,
        keep_result=None if keep_result is None else length(keep_result),
        on_duplicate=on_duplicate.value,
        debounce_for=None if debounce_for is None else length(debounce_for),
        limits=limit,
    )
    with open_queue(url, schema, queue) as client:
        note_unknown_queue(client, queue, may_be_new=True)
        if lines is not None:
            _publish_lines(client, lines, form, pattern, skip, rejects, as_json)
        else:
            content = _content(payload, file, most_input(client, form))
            _publish_one(client, content, form, pattern, as_json)


def _publish_one(
    client: "Queue", content: bytes, form: PayloadFormat, pattern: "NewMessage", as_json: bool
) -> None:
    message = parsed(content, form, pattern)
    (result,) = client.publish_many([replace(message, queue=message.queue or client.name)])
    if as_json:
        emit(result)
    else:
        typer.echo(result.id)
        if result.existing:
            say("A message with this key exists already; nothing was published.")
        elif result.replaced:
            say("It took the place of a waiting message with this key.")


def _publish_lines(
    client: "Queue",
    source: str,
    form: PayloadFormat,
    pattern: "NewMessage",
    skip: int,
    rejects: Path | None,
    as_json: bool,
) -> None:
    counts = PublishCounts(last=skip)
    stream, size = open_input(source)
    try:
        with stream, progress(size) as moved, open_rejects(rejects, stream, skip > 0) as save:
            publisher = BulkPublisher(client, form, pattern, counts, save, as_json)
            most = most_input(client, PayloadFormat.MESSAGE)
            publisher.run(read_batches(stream, skip, most), moved)
    except (OutputLost, RejectsLost, DatabaseFailed, PayloadTooLarge):
        _report(counts, stopped=True)
        raise
    _report(counts, counts.stopped)
    if counts.stopped:
        raise typer.Exit(Code.INTERRUPTED)
    if counts.bad:
        raise typer.Exit(Code.FAILED)


def _report(counts: PublishCounts, stopped: bool) -> None:
    parts = [f"{counts.published:,} published"]
    if counts.replaced:
        parts.append(f"{counts.replaced:,} replaced")
    if counts.existing:
        parts.append(f"{counts.existing:,} existed already")
    if counts.bad:
        parts.append(f"{counts.bad:,} bad lines skipped")
    say(", ".join(parts) + ".")
    if stopped:
        say(f"Stopped after line {counts.last:,}: continue with --skip {counts.last}.")


def _content(payload: str | None, file: str | None, most: int) -> bytes:
    if payload is not None:
        # As it was typed, even if not UTF-8: --as bytes allows that, the others refuse it.
        return payload.encode(errors="surrogateescape")
    assert file is not None
    stream, _ = open_input(file)
    with stream:
        return read_message(stream, most)


def _headers(pairs: list[str]) -> dict[str, str] | None:
    headers = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"{pair!r} is not a header: write name=value")
        headers[name] = value
    return headers or None
