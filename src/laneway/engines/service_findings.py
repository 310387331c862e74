"""Findings about who works: queues and kinds that nobody serves, stalled queues, vanished workers.

Judged by the registry of workers. Whoever claims without a Worker is not in it: a queue of which
something was claimed lately is served.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from laneway.inspection import Finding
from laneway.operations import MinuteFilter, WorkerInfo

UNSERVED = "queues without workers"
STALLED = "stalled queues"
WORKERS_LOOKED = 1000
_UNSERVED_AFTER = timedelta(minutes=1)
_STALLED_AFTER = timedelta(minutes=5)
_VANISHED_LATELY = timedelta(hours=1)
_SHOWN = 5


class WaitingQueue(NamedTuple):
    """``since``: since when there is work that could start; ``claimed``: when something of it was
    last claimed, as far as leases tell; ``kinds``: of messages at its head."""

    queue: str
    since: datetime | None
    claimed: datetime | None
    kinds: Sequence[str]


def lately(now: datetime) -> MinuteFilter:
    """The minutes in which a queue must have started something, if it has work."""
    return MinuteFilter(now - _STALLED_AFTER, now + timedelta(minutes=1), by="queue")


def service_findings(
    now: datetime,
    workers: Sequence[WorkerInfo],
    waiting: Sequence[WaitingQueue],
    started: Collection[str],
) -> list[Finding]:
    """``started``: queues that have started something lately, as far as the minutes tell."""
    unserved: dict[str, timedelta] = {}
    stalled: dict[str, timedelta] = {}
    unhandled = []
    for one in waiting:
        serving = [w for w in workers if w.state == "running" and one.queue in w.queues]
        claimed = one.claimed is not None and now - one.claimed < _STALLED_AFTER
        age = timedelta(0) if one.since is None else now - one.since
        if not serving and not claimed and one.queue not in started:
            if age > _UNSERVED_AFTER:
                unserved[one.queue] = age
        elif serving:
            free = any(w.used < w.slots for w in serving)
            if age > _STALLED_AFTER and free and not claimed and one.queue not in started:
                stalled[one.queue] = age
            unhandled += [
                f"{one.queue}/{kind or 'no kind'}"
                for kind in one.kinds
                if not any(w.handles(one.queue, kind) for w in serving)
            ]
    return [
        _about_queues(
            UNSERVED,
            unserved,
            "Work waits, and no live worker serves: {}.",
            "Start a worker for them; laneway workers shows who runs.",
            "Every queue that has work is served.",
        ),
        _finding(
            "kinds without handlers",
            unhandled,
            "Messages wait that no live worker of their queue handles: {}.",
            "Deploy a worker with a handler for these kinds, or cancel the messages.",
            "Every kind at the head of a queue has a handler.",
        ),
        _about_queues(
            STALLED,
            stalled,
            "Work is due, workers have free slots, and nothing was started: {}.",
            "Look at the workers' logs, and restart them.",
            "No queue is stalled.",
        ),
        _vanished(now, workers),
    ]


def _vanished(now: datetime, workers: Sequence[WorkerInfo]) -> Finding:
    gone = [w for w in workers if w.state == "vanished" and now - w.seen_at < _VANISHED_LATELY]
    names = [f"{w.host}, pid {w.pid} ({_length(now - w.seen_at)} ago)" for w in gone]
    return _finding(
        "vanished workers",
        names,
        "Not seen any more, though they did not stop: {}.",
        "They were killed or are frozen, or cannot reach the database: look at their logs. Their "
        "messages come back when the leases expire.",
        "No worker has vanished in the last hour.",
    )


def _finding(check: str, names: list[str], says: str, fix: str, well: str) -> Finding:
    if not names:
        return Finding(check, "ok", well)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Finding(check, "warn", says.format(", ".join(names[:_SHOWN]) + more), fix)


def _about_queues(
    check: str, ages: dict[str, timedelta], says: str, fix: str, well: str
) -> Finding:
    names = [f"{queue} (for {_length(age)})" for queue, age in ages.items()]
    return replace(_finding(check, names, says, fix, well), queues=tuple(ages))


def _length(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
