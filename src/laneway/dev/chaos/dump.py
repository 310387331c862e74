"""Looks at the tables: checks in snapshots during the run what must hold at every instant, and
dumps their contents at its end as JSON for the checker.

Detects stalls of the machine itself: a lease that expires then is not an error.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from laneway import HistoryEntry, LanewayError, Queue
from laneway.operations import Minute

from .config import CHANGING, LEASE, RunConfig, query, sql
from .ledger import Ledger

STEP = 0.1
LONG = 1.0  # seconds: how late a sleeping thread may wake up


class StallWatch:
    """Records each stall as a fault of all processes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        begun = time.time()
        while not self._stopping.wait(STEP):
            now = time.time()
            if now - begun > LONG:
                self._ledger.record(
                    "fault", kind="stall", target="*", t=begun, span=now - begun + 1
                )
            begun = now

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()


EVERY = 0.1


class Sampler:
    """``over_limit`` skips channels whose limit is lowered while they are busy."""

    def __init__(self, config: RunConfig, queue: Queue, ledger: Ledger) -> None:
        self._config = config
        self._queue = queue
        self._ledger = ledger
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._count = 0

    def _watch(self) -> None:
        while not self._stopping.wait(EVERY):
            try:
                self._sample()
            except LanewayError:
                continue  # the server is down or a lock is held: no sample
            self._count += 1

    def _sample(self) -> None:
        for queue, name, held, limit in self._query("over_limit"):
            if not name.startswith(CHANGING):
                text = f"{queue}/{name} has {held} leases, {limit} allowed"
                self._ledger.record("violation", text=text)
        for id, trouble in self._query("two_states"):
            self._ledger.record("violation", text=f"message {id} {trouble}")

    def _query(self, name: str) -> list[tuple[Any, ...]]:
        rows = self._queue.database.run(query(sql(self._config.engine, name)))
        return [tuple(row) for row in rows]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._ledger.record("sampled", count=self._count)


PAGE = 1000
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPANS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
OUTCOMES = (
    "completed", "retried", "failed", "expired", "deferred", "given_back", "cancelled", "lapsed",
    "redriven", "discarded",
)  # fmt: skip


def settled_dump(
    config: RunConfig, queue: Queue, position: str, begun: datetime, timeout: float
) -> dict[str, Any]:
    """After upkeep has counted everything, for which it waits: it counts what is certainly
    committed, and looks again for what came late. Nobody else is at work. ``position`` is where the
    history began."""
    deadline = time.monotonic() + timeout
    while True:
        with suppress(LanewayError):  # the server may have to end sessions that were killed
            queue.upkeep()
            queue.upkeep()
            document = dump(config, queue, position, begun)
            if _is_counted(document) or time.monotonic() > deadline:
                return document
        if time.monotonic() > deadline + timeout:
            return dump(config, queue, position, begun)
        time.sleep(0.5)


def dump(config: RunConfig, queue: Queue, position: str, begun: datetime) -> dict[str, Any]:
    now = queue.clock()
    messages, dead = list(_messages(queue)), list(_dead(queue))
    history = list(_history(queue, position))
    return {
        "taken_at": now.timestamp(),
        "lease": LEASE.total_seconds(),
        "server": str(queue.database.run(query(sql(config.engine, "version")))[0][0]),
        "messages": messages,
        "dead": dead,
        "history": history,
        "results": list(
            _results(
                queue, [x["id"] for x in messages + dead] + [x["message_id"] for x in history]
            )
        ),
        "effects": [row[0] for row in queue.database.run(query(sql(config.engine, "effects")))],
        "minutes": {
            name: list(map(_minute, queue.minutes(since=begun, until=now, step=step, by="kind")))
            for name, step in SPANS.items()
        },
        "kinds": _kinds(config, queue),
        "operations": [
            {
                "id": one.id, "action": one.action, "wanted": dict(one.wanted), "total": one.total,
                "done": one.done, "state": one.state, "started_at": one.started_at.timestamp(),
            }
            for one in queue.operations.list(limit=PAGE)
        ],
        "stats": [
            {
                "queue": one.queue, "waiting": one.waiting + one.scheduled, "leased": one.leased,
                "dead": one.dead, "exact": one.exact,
            }
            for one in queue.stats()
        ],
    }  # fmt: skip


def _is_counted(document: dict[str, Any]) -> bool:
    minutes = document["minutes"]["minute"]
    history = [row for row in document["history"] if row["outcome"] in OUTCOMES]
    ids = {row["id"] for row in document["messages"] + document["dead"]}
    ids |= {row["message_id"] for row in history}
    ended = sum(one[name] for one in minutes for name in OUTCOMES)
    published = sum(one["published"] for one in minutes)
    return bool(ended == len(history) and published == len(ids))


def _results(queue: Queue, known: list[int]) -> Iterator[dict[str, Any]]:
    """Of all messages that the database knows of, also of those that have not ended."""
    every = sorted(set(known))
    for start in range(0, len(every), PAGE):
        ids = every[start : start + PAGE]
        for id, stored in zip(
            ids, queue.database.run(queue.database.engine.events.results(ids)), strict=True
        ):
            if stored is not None:
                # A handler that has not returned yet has no result: nobody should have stored one.
                yield {"id": id, "fence": (json.loads(stored.payload) or {}).get("fence")}


def _messages(queue: Queue) -> Iterator[dict[str, Any]]:
    after = 0
    while page := queue.messages(limit=PAGE, after=after):
        after = page[-1].id
        for m in page:
            yield {
                "id": m.id, "queue": m.queue, "kind": m.kind, "channel": m.channel,
                "state": m.state, "due": _seconds(m.due) or 0.0, "attempt": m.attempt,
                "worker": m.worker, "fence": m.fence, "claimed_at": _seconds(m.claimed_at),
            }  # fmt: skip


def _dead(queue: Queue) -> Iterator[dict[str, Any]]:
    last = None
    while page := queue.dead_letters.list(limit=PAGE, after=last):
        last = page[-1]
        for one in page:
            yield {
                "id": one.id, "queue": one.queue, "kind": one.kind, "channel": one.channel,
                "reason": one.reason, "died_at": one.died_at.timestamp(),
            }  # fmt: skip


def _history(queue: Queue, position: str) -> Iterator[dict[str, Any]]:
    while True:
        page = queue.history_since(position, limit=PAGE)
        position = page.position
        if not page.entries:
            return
        yield from map(_row, page.entries)


def _row(entry: HistoryEntry) -> dict[str, Any]:
    times = entry.due, entry.published_at, entry.claimed_at, entry.started_at, entry.ended_at
    return {
        "id": entry.id, "message_id": entry.message_id, "queue": entry.queue, "kind": entry.kind,
        "channel": entry.channel, "attempt": entry.attempt, "fence": entry.fence,
        "worker": entry.worker, "outcome": entry.outcome, "claimed_at": _seconds(entry.claimed_at),
        "ended_at": _seconds(entry.ended_at), "terminal": entry.terminal, "dead": entry.dead,
        "times": [None if at is None else (at - EPOCH) // MICROSECOND for at in times],
    }  # fmt: skip


def _minute(one: Minute) -> dict[str, Any]:
    return asdict(one) | {
        "at": (one.at - EPOCH) // MICROSECOND,
        "oldest_due": _seconds(one.oldest_due),
    }


def _kinds(config: RunConfig, queue: Queue) -> list[dict[str, Any]]:
    """How many messages have not ended and how many are dead letters, as upkeep has counted."""
    rows = queue.database.run(query(sql(config.engine, "kind_counts")))
    return [
        {"queue": _text(row[0]), "kind": _text(row[1]), "live": int(row[2]), "dead": int(row[3])}
        for row in rows
    ]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
