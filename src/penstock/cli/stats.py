"""stats: numbers by queue."""

from datetime import UTC, datetime

from .connect import open_queue
from .options import Json, Schema, Url
from .output import Column, emit_all, say, table
from .times import age

COLUMNS = (
    Column("queue"),
    Column("waiting", right=True),
    Column("scheduled", right=True, wide=60),
    Column("leased", right=True),
    Column("dead", right=True),
    Column("channels", right=True, wide=70),
    Column("oldest", right=True),
)


def stats(url: Url = None, schema: Schema = None, as_json: Json = False) -> None:
    """Show how many messages are in which state, by queue."""
    with open_queue(url, schema) as client:
        numbers = client.numbers()
    now = datetime.now(UTC)
    if as_json:
        emit_all(numbers)
    else:
        rows = [
            (n.queue, n.waiting, n.scheduled, n.leased, n.dead, n.channels, age(n.oldest_due, now))
            for n in numbers
        ]
        table(COLUMNS, rows)
    if not numbers:
        say("All queues are empty.")
