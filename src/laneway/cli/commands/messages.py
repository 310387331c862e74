"""messages: list a page of messages; cancel; show one in any state, with its history."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import acting, open_queue
from laneway.cli.dialog import confirm, no_match
from laneway.cli.exits import Code
from laneway.cli.options import (
    Json,
    Limit,
    OnlyChannel,
    OnlyKind,
    OnlyQueue,
    Schema,
    Url,
    Yes,
    age,
    clock,
    relative,
)
from laneway.cli.output import Column, emit, emit_all, fields, printable, say, table

if TYPE_CHECKING:
    from laneway import HistoryEntry
    from laneway.inspection import MessageInfo


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
            "--state", "-s", help="Only in this state; dead letters are listed only if asked for."
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
        bool, typer.Option("--running", help="Also ask workers to stop running messages.")
    ] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Cancel waiting messages; with --running, also running ones.

    Workers are told within 10 seconds to stop a running handler.
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


_ATTEMPTS = (
    Column("ended"),
    Column("outcome"),
    Column("try", right=True),
    Column("took", right=True, wide=70),
    Column("reason"),
    Column("error"),
    Column("worker", wide=120),
)
_MOST_SHOWN = 4000

MessageId = Annotated[int, typer.Argument(metavar="ID", help="The message's id.", min=1)]


def show(
    message_id: MessageId,
    raw: Annotated[bool, typer.Option("--raw", help="Print only the payload, unchanged.")] = False,
    hide: Annotated[bool, typer.Option("--no-payload", help="Do not show the payload.")] = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Show a message in any state, with its history.

    Shows who has leased it and until when, or why it is a dead letter.
    """
    with open_queue(url, schema) as client:
        info = client.message(message_id)
        payload = None if hide and not raw else client.payload(message_id)
        entries = [] if raw else client.history(message_id)
    if raw:
        _write_raw(message_id, payload)
    elif info is None and not entries:
        say(f"There is no message {message_id}: it never existed, or its history was deleted.")
        raise typer.Exit(Code.NOTHING)
    elif as_json:
        emit(_document(message_id, info, payload, entries))
    else:
        _print(message_id, info, payload, entries)


def history(
    message_id: MessageId, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Show the attempts of a message."""
    with open_queue(url, schema) as client:
        entries = client.history(message_id)
    if as_json:
        emit_all(entries)
    else:
        _history(entries)
    if not entries:
        say(f"Message {message_id} has no history: no attempt has ended yet, or it was deleted.")
        raise typer.Exit(Code.NOTHING)


def _write_raw(message_id: int, payload: bytes | None) -> None:
    if payload is None:
        say(f"There is no message {message_id}, or it has ended.")
        raise typer.Exit(Code.NOTHING)
    sys.stdout.buffer.write(payload)
    sys.stdout.buffer.flush()


def _document(
    message_id: int,
    info: "MessageInfo | None",
    payload: bytes | None,
    entries: Sequence["HistoryEntry"],
) -> dict[str, Any]:
    state = "finished" if info is None else info.state
    content: Any = None
    if info is not None and payload is not None:
        content = _decoded(payload, info.content_type)
    return {
        "id": message_id,
        "state": state,
        "message": info,
        "payload": content,
        "history": list(entries),
    }


def _decoded(payload: bytes, content_type: str) -> Any:
    """JSON decoded, text as text, anything else as bytes (printed as base64)."""
    from laneway.errors import DecodeError, InvalidPayload
    from laneway.payload import decode_json, decode_text
    from laneway.to_json import plain

    try:
        if content_type.startswith("application/json"):
            return plain(decode_json(payload))
        return decode_text(payload) if content_type.startswith("text/") else payload
    except (DecodeError, InvalidPayload):  # not JSON, or nested too deep to be written again
        return payload


def _print(
    message_id: int,
    info: "MessageInfo | None",
    payload: bytes | None,
    entries: Sequence["HistoryEntry"],
) -> None:
    if info is None:
        # A refused late write may come after the end.
        end = next((entry for entry in entries if entry.terminal), entries[-1])
        state = (
            f"finished: {end.outcome}"
            if end.terminal
            else "ended, but its end is not in the history"
        )
        where = {"queue": end.queue, "channel": end.channel, "kind": end.kind}
        fields({"message": message_id, "state": state, **where})
    else:
        fields(_facts(info))
    if info is not None and payload is not None:
        typer.echo("")
        typer.echo(_readable(payload, info.content_type))
    if entries:
        typer.echo("")
        _history(entries)


def _facts(info: "MessageInfo") -> dict[str, object]:
    import json

    now = datetime.now(UTC)
    return {
        "message": info.id,
        "state": _state(info, now),
        "queue": info.queue,
        "channel": info.channel,
        "kind": info.kind,
        "key": info.key,
        "priority": info.priority,
        "attempt": f"{info.attempt} (max {info.max_attempts} without progress)",
        "published": f"{clock(info.published_at)} ({relative(info.published_at, now)})",
        "due": f"{clock(info.due)} ({relative(info.due, now)})" if info.due else None,
        "expires": clock(info.expires_at),
        "claimed": clock(info.claimed_at),
        "until": clock(info.until),
        "progress": _progress(info, now),
        "fence": info.fence,
        "died": clock(info.died_at),
        "reason": info.reason,
        "error": f"{info.error_type or ''} {info.error or ''}".strip(),
        "headers": json.dumps(info.headers, ensure_ascii=False) if info.headers else None,
        "payload": f"{info.payload_size:,} bytes, {info.content_type}",
    }


def _progress(info: "MessageInfo", now: datetime) -> str | None:
    said = info.progress
    if said is None:
        return None
    share = None if said.share is None else f"{said.share:.0%}"
    return f"{', '.join(filter(None, (share, said.note)))} ({relative(said.at, now)})"


def _state(info: "MessageInfo", now: datetime) -> str:
    if info.state != "leased" or info.until is None:
        return info.state
    word = "expires" if info.until > now else "expired"
    return f"leased by {info.worker}, {word} {relative(info.until, now)}"


def _readable(payload: bytes, content_type: str) -> str:
    import json

    value = _decoded(payload, content_type)
    if isinstance(value, bytes):
        text = repr(value[:_MOST_SHOWN])[2:-1]
    elif isinstance(value, str) and content_type.startswith("text/"):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    lines = text[:_MOST_SHOWN].split("\n")
    if len(payload) > _MOST_SHOWN:
        lines.append("… (--raw prints all of it)")
    return "\n".join(printable(line) for line in lines)


def _history(entries: Sequence["HistoryEntry"]) -> None:
    rows = [
        (
            clock(entry.ended_at),
            entry.outcome + (" †" if entry.dead else ""),
            entry.attempt,
            "" if entry.claimed_at is None else age(entry.claimed_at, entry.ended_at),
            entry.reason,
            f"{entry.error_type or ''} {entry.error or ''}".strip(),
            entry.worker,
        )
        for entry in entries
    ]
    table(_ATTEMPTS, rows)
