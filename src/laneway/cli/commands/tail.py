"""tail: follow attempts as they end."""

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli.connect import open_queue
from laneway.cli.options import Json, OnlyChannel, OnlyKind, OnlyQueue, Schema, Url
from laneway.cli.output import emit, printable, say
from laneway.cli.times import age

if TYPE_CHECKING:
    from laneway import HistoryEntry

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

    No attempt is missed, so the output waits for write transactions that are still open.
    """
    with open_queue(url, schema) as client:
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
                emit(entry) if as_json else typer.echo(_line(entry))
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


def _line(entry: "HistoryEntry") -> str:
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
