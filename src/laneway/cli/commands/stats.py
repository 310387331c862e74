"""stats: message counts by queue; top: queues and their fullest channels, live."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.dialog import note_unknown_queue
from laneway.cli.exits import Code
from laneway.cli.options import Json, OnlyQueue, Schema, Urls, age
from laneway.cli.output import Column, by_database, emit_all, rich_table, say, table
from laneway.cli.sources import Source, ended, look_at_all, open_watched, sources
from laneway.errors import LanewayError

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
    counted = client.minutes(since=since, until=now, by="queue", times=False)
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


def stats(url: Urls = None, schema: Schema = None, as_json: Json = False) -> None:
    """Count messages by queue and state."""
    found = sources(url, schema)
    answers = look_at_all(found, lambda one: (one.stats(), recent_rates(one), uncounted(one)))
    now = datetime.now(UTC)
    rows = [
        (source, n, rates, note is None)
        for source, (numbers, rates, note) in answers
        for n in numbers
    ]
    if as_json:
        emit_all(source.of(queue_document(n, rates, counted)) for source, n, rates, counted in rows)
    else:
        shown = [(source, queue_row(n, now, rates, counted)) for source, n, rates, counted in rows]
        table(*by_database(COLUMNS, shown))
    if not rows and answers:
        say("All queues are empty.")
    for source, (_, _, note) in answers:
        if note:
            say(note if source.name is None else f"{source.name}: {note}")
    ended(found, answers)


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
    url: Urls = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Watch queues, the fullest channels and throughput live."""
    if not (once or as_json or sys.stdout.isatty()):
        say("top needs a terminal: use --once, --json or laneway stats.")
        raise typer.Exit(Code.USAGE)
    found = sources(url, schema)
    with open_watched(found) as watched:
        if len(watched) == 1:
            note_unknown_queue(watched[0][1], queue)
        watch = Watch(watched, queue, channels)
        if as_json:
            _stream(watch, every, once)
        elif once:
            _print(watch.single())
        else:
            _live(watch, every)
        if once and watch.away:
            raise typer.Exit(Code.FAILED)


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn: a sample of each database, and those that are away."""

    samples: list[tuple[Source, Sample]]
    away: list[str] = field(default_factory=list)


class Watch:
    """All databases, asked at the same time; each keeps its last sample for the rates."""

    def __init__(
        self, watched: "list[tuple[Source, Queue]]", queue: str | None, channels: int
    ) -> None:
        self._watched = watched
        self._queue = queue
        self._channels = channels
        self._before: dict[str | None, Sample] = {}
        self._away_since: dict[str | None, datetime] = {}
        self.away: list[str] = []

    def single(self) -> Picture:
        return self._asked(lambda source, client: single(client, self._queue, self._channels))

    def next(self) -> Picture:
        return self._asked(
            lambda source, client: sample(
                client, self._queue, self._channels, self._before.get(source.name)
            )
        )

    def _asked(self, look: "Callable[[Source, Queue], Sample]") -> Picture:
        if len(self._watched) == 1:
            source, client = self._watched[0]
            self._before[source.name] = seen = look(source, client)
            return Picture([(source, seen)])
        samples = []
        self.away = []
        with ThreadPoolExecutor(len(self._watched)) as threads:
            asked = [(one, threads.submit(look, one, client)) for one, client in self._watched]
        for source, answer in asked:
            try:
                self._before[source.name] = seen = answer.result()
                samples.append((source, seen))
                self._away_since.pop(source.name, None)
            except LanewayError as error:
                since = self._away_since.setdefault(source.name, datetime.now(UTC))
                for_ = age(since, datetime.now(UTC))
                self.away.append(f"{source.name} is away ({for_}): {error}")
        return Picture(samples, self.away)


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
    # A server that has started anew counts from zero.
    published = max(0, totals.published - before.totals.published) / seconds
    ended = max(0, totals.ended - before.totals.ended) / seconds
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


def drawn(picture: Picture, width: int, height: int | None) -> "RenderableType":
    """As many channels as fit, the fullest of all databases first."""
    from rich.console import Group
    from rich.text import Text

    samples = picture.samples
    notes = [seen.note for _, seen in samples if seen.note][:1] + picture.away
    queues = [
        (source, queue_row(n, seen.at, seen.rates, seen.note is None))
        for source, seen in samples
        for n in seen.queues
    ]
    lanes = [(source, n, seen.at) for source, seen in samples for n in seen.channels]
    if len(samples) > 1:
        lanes.sort(key=lambda lane: -lane[1].waiting)
    taken = len(queues) + _OTHER_LINES + sum(len(wrap(note, width)) for note in notes)
    rows = None if height is None else max(1, height - taken)
    shown = [(source, _channel(n, at)) for source, n, at in lanes[:rows]]
    lines = [Text(_headline([seen for _, seen in samples]), no_wrap=True, overflow="ellipsis")]
    lines.extend(Text(note, style="yellow") for note in notes)
    return Group(
        *lines,
        rich_table(*by_database(COLUMNS, queues), width),
        rich_table(*by_database(_CHANNELS, shown), width),
    )


def _headline(samples: list[Sample]) -> str:
    if not samples:
        return "laneway"
    moment = samples[0].at.astimezone().strftime("%H:%M:%S")
    if any(seen.published_rate is None or seen.ended_rate is None for seen in samples):
        return f"laneway  {moment}"
    ended = f"{sum(seen.ended_rate or 0 for seen in samples):,.0f} ended/s"
    if any(seen.note is not None for seen in samples):
        ended = "ended/s not counted"
    published = sum(seen.published_rate or 0 for seen in samples)
    return f"laneway  {moment}  {published:,.0f} published/s  {ended}"


def _channel(n: "ChannelStats", now: datetime) -> tuple[Any, ...]:
    numbers = counts(n.exact, None, n.waiting, n.scheduled, n.leased, n.dead)
    return n.queue, n.channel, *numbers, age(n.oldest_due, now)


def _print(seen: Picture) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(drawn(seen, console.width, None))


def _live(watch: Watch, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    seen = watch.next()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(drawn(seen, console.width, console.height), refresh=True)
            time.sleep(every)
            seen = watch.next()


def _stream(watch: Watch, every: float, once: bool) -> None:
    seen = watch.single() if once else watch.next()
    while True:
        emit_all(source.of(_document(one)) for source, one in seen.samples)
        for away in seen.away:
            say(f"laneway: {away}")
        sys.stdout.flush()
        if once:
            return
        time.sleep(every)
        seen = watch.next()


def _document(seen: Sample) -> dict[str, Any]:
    return {
        "at": seen.at,
        "published_rate": seen.published_rate,
        "ended_rate": seen.ended_rate,
        "rates_counted": seen.note is None,
        "queues": [queue_document(n, seen.rates, seen.note is None) for n in seen.queues],
        "channels": seen.channels,
    }
