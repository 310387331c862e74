"""show: one message wherever it is, with its history; history alone."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .connect import open_queue
from .exits import Code
from .options import Json, Schema, Url
from .output import Column, emit, emit_all, fields, printable, say, table
from .times import age, clock, relative

if TYPE_CHECKING:
    from penstock import HistoryEntry, MessageInfo

_COLUMNS = (
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
    raw: Annotated[bool, typer.Option("--raw", help="Only the payload, as it is.")] = False,
    hide: Annotated[bool, typer.Option("--no-payload", help="Leave the payload out.")] = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Show a message wherever it is, with its history.

    Waiting, scheduled, leased by whom until when, dead and why, or finished.
    """
    with open_queue(url, schema) as client:
        info = client.message(message_id)
        payload = None if hide and not raw else client.payload(message_id)
        entries = [] if raw else client.history(message_id)
    if raw:
        _write_raw(message_id, payload)
    elif info is None and not entries:
        say(f"No message {message_id}: it never was, or its history is no longer kept.")
        raise typer.Exit(Code.NOTHING)
    elif as_json:
        emit(_document(message_id, info, payload, entries))
    else:
        _tell(message_id, info, payload, entries)


def history(
    message_id: MessageId, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Show what happened to a message, attempt by attempt."""
    with open_queue(url, schema) as client:
        entries = client.history(message_id)
    if as_json:
        emit_all(entries)
    else:
        _history(entries)
    if not entries:
        say(f"Message {message_id} has no history (yet, or no longer).")
        raise typer.Exit(Code.NOTHING)


def _write_raw(message_id: int, payload: bytes | None) -> None:
    if payload is None:
        say(f"No message {message_id} that has not ended.")
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
    """JSON as it is, text as text, all else as base64 (which is how bytes are written)."""
    from penstock import DecodeError, InvalidPayload
    from penstock.payload import decode_json, decode_text
    from penstock.plain import plain

    try:
        if content_type.startswith("application/json"):
            return plain(decode_json(payload))
        return decode_text(payload) if content_type.startswith("text/") else payload
    except (DecodeError, InvalidPayload):  # no JSON, or too deep to be written again
        return payload


def _tell(
    message_id: int,
    info: "MessageInfo | None",
    payload: bytes | None,
    entries: Sequence["HistoryEntry"],
) -> None:
    if info is None:
        # A refused write of a stale holder may come after the end.
        end = next((entry for entry in entries if entry.terminal), entries[-1])
        state = f"finished: {end.outcome}" if end.terminal else "gone, with its end not kept"
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
        "attempt": f"{info.attempt} (at most {info.max_attempts} without progress)",
        "published": f"{clock(info.published_at)} ({relative(info.published_at, now)})",
        "due": f"{clock(info.due)} ({relative(info.due, now)})" if info.due else None,
        "expires": clock(info.expires_at),
        "claimed": clock(info.claimed_at),
        "until": clock(info.until),
        "fence": info.fence,
        "died": clock(info.died_at),
        "reason": info.reason,
        "error": f"{info.error_type or ''} {info.error or ''}".strip(),
        "headers": json.dumps(info.headers, ensure_ascii=False) if info.headers else None,
        "payload": f"{info.payload_size:,} bytes, {info.content_type}",
    }


def _state(info: "MessageInfo", now: datetime) -> str:
    if info.state != "leased" or info.until is None:
        return info.state
    word = "ends" if info.until > now else "ran out"
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
        lines.append("… (all of it: --raw)")
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
    table(_COLUMNS, rows)
