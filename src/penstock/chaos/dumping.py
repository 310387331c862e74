"""What the tables say at the end, as JSON for the checker."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from penstock import HistoryEntry, Queue

from .stage import LEASE, Stage, ask, sql

PAGE = 1000


def dump(stage: Stage, queue: Queue, position: str) -> dict[str, Any]:
    """``position`` is where the history began."""
    return {
        "taken_at": queue.clock().timestamp(),
        "lease": LEASE.total_seconds(),
        "server": str(queue._core.run(ask(sql(stage.engine, "version")))[0][0]),
        "messages": list(_messages(queue)),
        "dead": list(_dead(queue)),
        "history": list(_history(queue, position)),
        "effects": [row[0] for row in queue._core.run(ask(sql(stage.engine, "effects")))],
    }


def _messages(queue: Queue) -> Iterator[dict[str, Any]]:
    after = 0
    while page := queue.messages(limit=PAGE, after=after):
        after = page[-1].id
        for m in page:
            yield {
                "id": m.id, "channel": m.channel, "state": m.state, "due": _seconds(m.due) or 0.0,
                "attempt": m.attempt, "worker": m.worker, "fence": m.fence,
                "claimed_at": _seconds(m.claimed_at),
            }  # fmt: skip


def _dead(queue: Queue) -> Iterator[dict[str, Any]]:
    last = None
    while page := queue.dead_letters.list(limit=PAGE, after=last):
        last = page[-1]
        for letter in page:
            yield {"id": letter.id, "channel": letter.channel, "reason": letter.reason}


def _history(queue: Queue, position: str) -> Iterator[dict[str, Any]]:
    while True:
        page = queue.history_since(position, limit=PAGE)
        position = page.position
        if not page.entries:
            return
        yield from map(_row, page.entries)


def _row(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "id": entry.id, "message_id": entry.message_id, "channel": entry.channel,
        "attempt": entry.attempt, "fence": entry.fence, "worker": entry.worker,
        "outcome": entry.outcome, "claimed_at": _seconds(entry.claimed_at),
        "ended_at": _seconds(entry.ended_at), "terminal": entry.terminal, "dead": entry.dead,
    }  # fmt: skip


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
