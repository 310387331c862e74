"""stats: message counts by queue."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from laneway.cli.connect import open_queue
from laneway.cli.options import Json, Schema, Url
from laneway.cli.output import Column, emit_all, say, table
from laneway.cli.rates import Rates, recent_rates, uncounted
from laneway.cli.times import age

if TYPE_CHECKING:
    from laneway import QueueStats

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
