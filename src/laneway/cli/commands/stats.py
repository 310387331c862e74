"""stats: message counts by queue; top: queues and their fullest channels, live."""

import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import open_queue
from laneway.cli.exits import Code
from laneway.cli.options import Json, OnlyQueue, Schema, Url, age
from laneway.cli.output import Column, emit, emit_all, rich_table, say, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from laneway import ChannelStats, Queue, QueueStats
    from laneway.inspection import Totals


_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second. ``failed`` are attempts that were retried, failed or expired; ``ended`` all
    attempts and other ends."""

    published: float
    completed: float
    failed: float
    ended: float


_KEPT = {
    "none": "The history is off, so what is done is not counted",
    "failures": "The history keeps only failures, so what is completed is not counted",
}


def uncounted(client: "Queue") -> str | None:
    """What to say beside rates if they show too little: minutes are counted from the history."""
    kept = client.settings().history
    if kept == "all":
        return None
    return (
        f"{_KEPT[kept]}: a rate of zero does not mean that nothing happens. "
        'queue.configure(history="all") counts it.'
    )


def recent_rates(client: "Queue") -> dict[str, Rates]:
    """By queue, over this minute and the one before; empty if upkeep counted nothing in them."""
    now = client.clock()
    since = now.replace(second=0, microsecond=0) - _MINUTE
    seconds = (now - since).total_seconds()
    counted = client.minutes(since=since, until=now, by="queue")
    sums: dict[str, list[int]] = {}
    for minute in counted:
        failed = minute.retried + minute.failed + minute.expired
        others = minute.deferred + minute.given_back + minute.cancelled + minute.lapsed
        ended = minute.completed + failed + others + minute.discarded
        found = sums.setdefault(minute.queue or "", [0, 0, 0, 0])
        for index, count in enumerate((minute.published, minute.completed, failed, ended)):
            found[index] += count
    return {name: Rates(*(count / seconds for count in found)) for name, found in sums.items()}


COLUMNS = (
    Column("queue"),
    Column("waiting", right=True),
    Column("scheduled", right=True, wide=60),
    Column("leased", right=True),
    Column("dead", right=True),
    Column("channels", right=True, wide=70),
    Column("oldest", right=True),
    Column("done/s", right=True, wide=80),
)


def stats(url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Show the number of messages by queue and state, and what is completed per second."""
    with open_queue(url, schema) as client:
        numbers, rates = client.stats(), recent_rates(client)
        note = uncounted(client)
    now = datetime.now(UTC)
    if as_json:
        emit_all(queue_document(n, rates, note is None) for n in numbers)
    else:
        table(COLUMNS, [queue_row(n, now, rates, note is None) for n in numbers])
    if not numbers:
        say("All queues are empty.")
    if note:
        say(note)


def queue_row(
    n: "QueueStats", now: datetime, rates: dict[str, Rates], counted: bool = True
) -> tuple[Any, ...]:
    numbers = counts(n.exact, n.as_of, n.waiting, n.scheduled, n.leased, n.dead)
    channels = counts(n.exact, None, n.channels)
    done = f"{rates[n.queue].completed:,.1f}" if n.queue in rates else ""
    if not counted:
        done = "not counted"
    return n.queue, *numbers, *channels, age(n.oldest_due, now), done


def queue_document(
    n: "QueueStats", rates: dict[str, Rates], counted: bool = True
) -> dict[str, Any]:
    """The rates are null where upkeep has counted nothing lately; ``rates_counted`` is false if the
    history does not keep what they are counted from, so that they are too low."""
    known = rates.get(n.queue)
    return {
        **asdict(n),
        "published_rate": None if known is None else known.published,
        "completed_rate": None if known is None else known.completed,
        "failed_rate": None if known is None else known.failed,
        "rates_counted": counted,
    }


def counts(exact: bool, as_of: datetime | None, *numbers: int) -> tuple[Any, ...]:
    """As they are if exact; else "about" or "at least" so many."""
    if exact:
        return numbers
    word = "at least" if as_of is None else "about"
    return tuple(f"{word} {number:,}" if number else number for number in numbers)


_CHANNELS = (
    Column("queue"),
    Column("channel"),
    Column("waiting", right=True),
    Column("scheduled", right=True, wide=80),
    Column("leased", right=True, wide=50),
    Column("dead", right=True, wide=70),
    Column("oldest", right=True),
)
_MOMENT = 0.5  # seconds
_OTHER_LINES = 8
"""Lines that are not rows of the second table."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The stats of one moment. Rates are per second: ``rates`` by the last minute figures, the
    others since the sample before."""

    at: datetime
    queues: list["QueueStats"]
    channels: list["ChannelStats"]
    totals: "Totals"
    rates: dict[str, Rates]
    published_rate: float | None = None
    ended_rate: float | None = None
    note: str | None = None
    """Why the rates show too little."""


def top(
    queue: OnlyQueue = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between updates.")] = 2.0,
    channels: Annotated[int, typer.Option(min=1, max=1000, help="Number of channels shown.")] = 20,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Watch queues, the fullest channels and throughput live."""
    if not (once or as_json or sys.stdout.isatty()):
        say("top needs a terminal: use --once, --json or laneway stats.")
        raise typer.Exit(Code.USAGE)
    with open_queue(url, schema) as client:
        if as_json:
            _stream(client, queue, channels, every, once)
        elif once:
            _print(single(client, queue, channels))
        else:
            _live(client, queue, channels, every)


def sample(client: "Queue", queue: str | None, channels: int, before: Sample | None) -> Sample:
    """The numbers of now, and how fast they moved since ``before``."""
    at, totals = client.clock(), client.totals()
    queues = [n for n in client.stats() if queue in (None, n.queue)]
    fullest = client.channel_stats(queue=queue, limit=channels)
    rates = {name: known for name, known in recent_rates(client).items() if queue in (None, name)}
    note = uncounted(client)
    if before is None or at <= before.at:
        return Sample(at, queues, fullest, totals, rates, note=note)
    seconds = (at - before.at).total_seconds()
    published = (totals.published - before.totals.published) / seconds
    ended = (totals.ended - before.totals.ended) / seconds
    return Sample(at, queues, fullest, totals, rates, published, ended, note)


def single(client: "Queue", queue: str | None, channels: int) -> Sample:
    """One sample with rates: by the last minute figures, or, where upkeep has counted nothing or
    not everything, by two readings a moment apart."""
    first = sample(client, queue, channels, None)
    if not first.rates or first.note:
        time.sleep(_MOMENT)
        seconds = max((client.clock() - first.at).total_seconds(), _MOMENT)
        later, before = client.totals(), first.totals
        return replace(
            first,
            published_rate=(later.published - before.published) / seconds,
            ended_rate=(later.ended - before.ended) / seconds,
        )
    known = first.rates.values()
    published, ended = sum(r.published for r in known), sum(r.ended for r in known)
    return replace(first, published_rate=published, ended_rate=ended)


def drawn(seen: Sample, width: int, height: int | None) -> "RenderableType":
    """As many channels as fit."""
    from rich.console import Group
    from rich.text import Text

    taken = len(seen.queues) + _OTHER_LINES + len(wrap(seen.note or "", width))
    rows = None if height is None else max(1, height - taken)
    counted = seen.note is None
    numbers = [queue_row(n, seen.at, seen.rates, counted) for n in seen.queues]
    queues = rich_table(COLUMNS, numbers, width)
    lanes = rich_table(_CHANNELS, [_channel(n, seen.at) for n in seen.channels[:rows]], width)
    lines = [Text(_headline(seen), no_wrap=True, overflow="ellipsis")]
    if seen.note:
        lines.append(Text(seen.note, style="yellow"))
    return Group(*lines, queues, lanes)


def _headline(seen: Sample) -> str:
    moment = seen.at.astimezone().strftime("%H:%M:%S")
    if seen.published_rate is None or seen.ended_rate is None:
        return f"laneway  {moment}"
    ended = f"{seen.ended_rate:,.0f} ended/s" if seen.note is None else "ended/s not counted"
    speed = f"{seen.published_rate:,.0f} published/s  {ended}"
    return f"laneway  {moment}  {speed}"


def _channel(n: "ChannelStats", now: datetime) -> tuple[Any, ...]:
    numbers = counts(n.exact, None, n.waiting, n.scheduled, n.leased, n.dead)
    return n.queue, n.channel, *numbers, age(n.oldest_due, now)


def _print(seen: Sample) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(drawn(seen, console.width, None))


def _live(client: "Queue", queue: str | None, channels: int, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    seen = sample(client, queue, channels, None)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(drawn(seen, console.width, console.height), refresh=True)
            time.sleep(every)
            seen = sample(client, queue, channels, seen)


def _stream(client: "Queue", queue: str | None, channels: int, every: float, once: bool) -> None:
    seen = single(client, queue, channels) if once else sample(client, queue, channels, None)
    while True:
        emit(_document(seen))
        sys.stdout.flush()
        if once:
            return
        time.sleep(every)
        seen = sample(client, queue, channels, seen)


def _document(seen: Sample) -> dict[str, Any]:
    return {
        "at": seen.at,
        "published_rate": seen.published_rate,
        "ended_rate": seen.ended_rate,
        "rates_counted": seen.note is None,
        "queues": [queue_document(n, seen.rates, seen.note is None) for n in seen.queues],
        "channels": seen.channels,
    }
