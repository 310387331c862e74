"""publish: one message from the command line or a file, or one a line."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import DatabaseFailed

from .connect import open_queue
from .exits import Code
from .lines import Form, open_input, parsed, read_batches
from .options import InQueue, Json, Schema, Url
from .output import emit, say
from .publishing import Account, Pump, progress
from .rejects import RejectsLost, keeping
from .streams import OutputLost
from .times import length, moment

if TYPE_CHECKING:
    from penstock import NewMessage, Queue


def publish(
    payload: Annotated[
        str | None, typer.Argument(help="The payload; JSON unless --as says otherwise.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="One payload from this file; - is stdin.")
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option("--lines", "-l", help="A message for each line of this file; - is stdin."),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--as", help='What a payload is. message: {"payload": …, "channel": …, "key": …}.'
        ),
    ] = Form.JSON,
    channel: Annotated[str, typer.Option("--channel", "-c", help="The fair lane.")] = "default",
    queue: InQueue = None,
    kind: Annotated[str, typer.Option("--kind", "-k", help="Which handler it is for.")] = "",
    key: Annotated[
        str | None, typer.Option(help="Publish nothing while a message of this key lives.")
    ] = None,
    key_window: Annotated[
        str | None, typer.Option(help="The key holds so long after its message: 1h, 2d.")
    ] = None,
    priority: Annotated[int, typer.Option(min=0, max=9, help="9 goes first.")] = 0,
    delay: Annotated[
        str | None, typer.Option(help="Not before so long: 30s, 5m, 1h30m, 2d.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="Not before then: 2026-01-31T08:00+01:00.")] = None,
    expires_in: Annotated[str | None, typer.Option(help="Nobody needs it after so long.")] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, help="Tries without progress.")] = None,
    content_type: Annotated[str | None, typer.Option(help="Instead of the one by --as.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="name=value; may be repeated.")
    ] = None,
    skip: Annotated[int, typer.Option(min=0, help="With --lines: leave out the first.")] = 0,
    rejects: Annotated[
        Path | None, typer.Option(help="With --lines: keep bad lines in this file.")
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Publish a message, or one for each line of a file.

    A bad line is named and left out; the others are published, and the exit code is 1.
    """
    from penstock import NewMessage

    if sum(given is not None for given in (payload, file, lines)) != 1:
        raise typer.BadParameter("give one of: a payload, --file, --lines (- is stdin)")
    if lines is None and (skip or rejects):
        raise typer.BadParameter("--skip and --rejects go with --lines")
    if key_window is not None and key is None and form is not Form.MESSAGE:
        raise typer.BadParameter("--key-window goes with --key, or with --as message")
    pattern = NewMessage(
        None,
        channel=channel,
        kind=kind,
        key=key,
        key_window=None if key_window is None else length(key_window),
        headers=_headers(header or []),
        priority=priority,
        delay=None if delay is None else length(delay),
        at=None if at is None else moment(at),
        expires_in=None if expires_in is None else length(expires_in),
        max_attempts=max_attempts,
        content_type=content_type,
    )
    with open_queue(url, schema, queue) as client:
        if lines is not None:
            _publish_lines(client, lines, form, pattern, skip, rejects, as_json)
        else:
            _publish_one(client, _content(payload, file), form, pattern, as_json)


def _publish_one(
    client: "Queue", content: bytes, form: Form, pattern: "NewMessage", as_json: bool
) -> None:
    message = parsed(content, form, pattern)
    (result,) = client.publish_many([replace(message, queue=message.queue or client.name)])
    if as_json:
        emit(result)
    else:
        typer.echo(result.id)
        if result.existing:
            say("A message with this key lives already; nothing was published.")


def _publish_lines(
    client: "Queue",
    source: str,
    form: Form,
    pattern: "NewMessage",
    skip: int,
    rejects: Path | None,
    as_json: bool,
) -> None:
    account = Account(last=skip)
    stream, size = open_input(source)
    try:
        with stream, progress(size) as moved, keeping(rejects, stream, skip > 0) as keep:
            pump = Pump(client, form, pattern, account, keep, as_json)
            pump.run(read_batches(stream, skip), moved)
    except (OutputLost, RejectsLost, DatabaseFailed):
        _tell(account, stopped=True)
        raise
    _tell(account, account.stopped)
    if account.stopped:
        raise typer.Exit(Code.INTERRUPTED)
    if account.bad:
        raise typer.Exit(Code.FAILED)


def _tell(account: Account, stopped: bool) -> None:
    parts = [f"{account.published:,} published"]
    if account.existing:
        parts.append(f"{account.existing:,} were there already")
    if account.bad:
        parts.append(f"{account.bad:,} bad lines left out")
    say(", ".join(parts) + ".")
    if stopped:
        say(f"Stopped after line {account.last:,}: go on with --skip {account.last}.")


def _content(payload: str | None, file: str | None) -> bytes:
    if payload is not None:
        # As it was typed, also if that is no UTF-8: bytes may be, and all else is refused for it.
        return payload.encode(errors="surrogateescape")
    assert file is not None
    stream, _ = open_input(file)
    with stream:
        return stream.read()


def _headers(pairs: list[str]) -> dict[str, str] | None:
    headers = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"{pair!r} is no header: write name=value")
        headers[name] = value
    return headers or None
