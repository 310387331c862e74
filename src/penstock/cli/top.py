"""top: queues and their fullest channels, live."""

import sys
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .connect import open_queue
from .exits import Code
from .options import Json, OnlyQueue, Schema, Url
from .output import Column, emit, rich_table, say
from .stats import COLUMNS
from .times import age

if TYPE_CHECKING:
    from rich.console import RenderableType

    from penstock import ChannelNumbers, Queue, QueueNumbers, Totals

_CHANNELS = (
    Column("queue"),
    Column("channel"),
    Column("waiting", right=True),
    Column("scheduled", right=True, wide=80),
    Column("leased", right=True, wide=50),
    Column("dead", right=True, wide=70),
    Column("oldest", right=True),
)
_ROOM = 8
"""Lines that are no rows of the second table."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one moment; rates are per second since the look before."""

    at: datetime
    queues: list["QueueNumbers"]
    channels: list["ChannelNumbers"]
    totals: "Totals"
    published_rate: float | None = None
    ended_rate: float | None = None


def top(
    queue: OnlyQueue = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    channels: Annotated[int, typer.Option(min=1, max=1000, help="How many channels.")] = 20,
    once: Annotated[bool, typer.Option("--once", help="One look, then end.")] = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Watch queues, full channels and throughput live."""
    if not (once or as_json or sys.stdout.isatty()):
        say("top needs a terminal: use --once, --json, or penstock stats.")
        raise typer.Exit(Code.USAGE)
    with open_queue(url, schema) as client:
        if as_json:
            _stream(client, queue, channels, every, once)
        elif once:
            _print(look(client, queue, channels, None))
        else:
            _live(client, queue, channels, every)


def look(client: "Queue", queue: str | None, channels: int, before: Look | None) -> Look:
    """The numbers of now, and how fast they moved since ``before``."""
    at, totals = client.clock(), client.totals()
    queues = [n for n in client.numbers() if queue in (None, n.queue)]
    fullest = client.channel_numbers(queue=queue, limit=channels)
    if before is None or at <= before.at:
        return Look(at, queues, fullest, totals)
    seconds = (at - before.at).total_seconds()
    published = (totals.published - before.totals.published) / seconds
    ended = (totals.ended - before.totals.ended) / seconds
    return Look(at, queues, fullest, totals, published, ended)


def drawn(seen: Look, width: int, height: int | None) -> "RenderableType":
    """As many channels as there is room for."""
    from rich.console import Group
    from rich.text import Text

    rows = None if height is None else max(1, height - len(seen.queues) - _ROOM)
    queues = rich_table(COLUMNS, [_queue(n, seen.at) for n in seen.queues], width)
    lanes = rich_table(_CHANNELS, [_channel(n, seen.at) for n in seen.channels[:rows]], width)
    return Group(Text(_headline(seen), no_wrap=True, overflow="ellipsis"), queues, lanes)


def _headline(seen: Look) -> str:
    moment = seen.at.astimezone().strftime("%H:%M:%S")
    if seen.published_rate is None or seen.ended_rate is None:
        return f"penstock  {moment}"
    speed = f"{seen.published_rate:,.0f} published/s  {seen.ended_rate:,.0f} ended/s"
    return f"penstock  {moment}  {speed}"


def _queue(n: "QueueNumbers", now: datetime) -> tuple[Any, ...]:
    oldest = age(n.oldest_due, now)
    return n.queue, n.waiting, n.scheduled, n.leased, n.dead, n.channels, oldest


def _channel(n: "ChannelNumbers", now: datetime) -> tuple[Any, ...]:
    oldest = age(n.oldest_due, now)
    return n.queue, n.channel, n.waiting, n.scheduled, n.leased, n.dead, oldest


def _print(seen: Look) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(drawn(seen, console.width, None))


def _live(client: "Queue", queue: str | None, channels: int, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    seen = look(client, queue, channels, None)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(drawn(seen, console.width, console.height), refresh=True)
            time.sleep(every)
            seen = look(client, queue, channels, seen)


def _stream(client: "Queue", queue: str | None, channels: int, every: float, once: bool) -> None:
    seen = look(client, queue, channels, None)
    while True:
        emit(_document(seen))
        sys.stdout.flush()
        if once:
            return
        time.sleep(every)
        seen = look(client, queue, channels, seen)


def _document(seen: Look) -> dict[str, Any]:
    return {
        "at": seen.at,
        "published_rate": seen.published_rate,
        "ended_rate": seen.ended_rate,
        "queues": seen.queues,
        "channels": seen.channels,
    }
