"""workers: list worker processes."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from laneway.cli.connect import open_queue
from laneway.cli.options import Json, Limit, Schema, Url
from laneway.cli.output import Column, emit_all, say, table
from laneway.cli.times import age

if TYPE_CHECKING:
    from laneway import WorkerInfo

_COLUMNS = (
    Column("host"),
    Column("pid", right=True),
    Column("state"),
    Column("used", right=True),
    Column("slots", right=True),
    Column("queues"),
    Column("kinds"),
    Column("version", wide=100),
    Column("started", right=True, wide=90),
    Column("seen", right=True),
)


def workers(
    limit: Limit = 1000, url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """List worker processes: what they serve, how busy they are, who has vanished."""
    with open_queue(url, schema) as client:
        found = client.workers(limit=limit)
    if as_json:
        emit_all(found)
    else:
        now = datetime.now(UTC)
        found = sorted(found, key=lambda one: (one.host, one.started_at, one.id))
        table(_COLUMNS, [_row(worker, now) for worker in found])
    if not found:
        say("No worker is running.")
    elif vanished := sum(worker.state == "vanished" for worker in found):
        say(f"Vanished, not seen for 30 seconds: {vanished}. Their leases expire by themselves.")


def _row(worker: "WorkerInfo", now: datetime) -> tuple[object, ...]:
    return (
        worker.host,
        worker.pid,
        worker.state,
        worker.used,
        worker.slots,
        ", ".join(worker.queues),
        ", ".join(worker.kinds) or "all",
        worker.version,
        age(worker.started_at, now),
        age(worker.seen_at, now),
    )
