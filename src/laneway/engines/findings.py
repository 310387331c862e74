"""Findings that every database has: does the schema fit this package, does upkeep run, and who
works?"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from laneway.inspection import Finding
from laneway.operations import Minute, MinuteFilter, WorkerInfo
from laneway.shared_limits import SharedLimit


def schema_finding(version: int | None, known: int, schema: str) -> Finding:
    if version is None:
        says = f"Laneway is not installed in schema {schema!r}."
        return Finding("schema", "fail", says, "Run laneway install.")
    says = f"Schema {schema!r} has version {version}"
    if version < known:
        return Finding("schema", "fail", f"{says}, this package needs {known}.", "laneway upgrade")
    if version > known:
        says = f"{says}, this package knows {known}; older clients keep working."
        return Finding("schema", "warn", says, "Upgrade the package once the deploy is done.")
    return Finding("schema", "ok", f"{says}, the one that this package needs.")


def upkeep_finding(expired: int, since: object) -> Finding:
    """``expired``: leases that ended long ago, at most 1000; the oldest ended at ``since``."""
    if not expired:
        return Finding("upkeep", "ok", "No expired lease is waiting for upkeep.")
    count = "1000 or more" if expired >= 1000 else str(expired)
    says = f"Expired leases that upkeep has not handled: {count}, the oldest since {since}."
    fix = "Upkeep does not run: start a worker, or call queue.upkeep() regularly."
    return Finding("upkeep", "fail", says, fix)


# Findings about who works: queues and kinds that nobody serves, stalled queues, vanished workers.
#
# Judged by the registry of workers. Whoever claims without a Worker is not in it: a queue of which
# something was claimed lately is served.

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
    return MinuteFilter(now - _STALLED_AFTER, now + timedelta(minutes=1), by="queue", times=False)


def _started(minutes: Iterable[Minute], since: datetime) -> set[str]:
    """The queues that have started something since then, as far as the minutes tell."""
    minute = timedelta(minutes=1)
    return {one.queue or "" for one in minutes if one.started and one.at + minute > since}


def service_findings(
    now: datetime,
    workers: Sequence[WorkerInfo],
    waiting: Sequence[WaitingQueue],
    minutes: Sequence[Minute],
) -> list[Finding]:
    """``minutes``: of ``lately``."""
    started = _started(minutes, now - _STALLED_AFTER)
    started_just_now = _started(minutes, now - 2 * _UNSERVED_AFTER)
    unserved: dict[str, timedelta] = {}
    stalled: dict[str, timedelta] = {}
    unhandled = []
    for one in waiting:
        serving = [w for w in workers if w.state == "running" and one.queue in w.queues]
        claimed = one.claimed is not None and now - one.claimed < _STALLED_AFTER
        age = timedelta(0) if one.since is None else now - one.since
        if not serving:
            # A client that claims without a worker is in no list: what it starts tells of it.
            alone = one.claimed is not None and now - one.claimed < _UNSERVED_AFTER
            if age > _UNSERVED_AFTER and not alone and one.queue not in started_just_now:
                unserved[one.queue] = age
        else:
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


# Findings about shared limits.

_SHOWN = 5
_OPEN_LONG = timedelta(minutes=10)


def limits_findings(limits: Sequence[SharedLimit], now: datetime) -> list[Finding]:
    """Limits that messages name and nobody has set, by a typo or a late deploy; and breakers that
    stay open."""
    found = [_unset([limit.name for limit in limits if not limit.limited])]
    if any(limit.breaker is not None for limit in limits):
        opened = [limit for limit in limits if limit.opened_at is not None]
        found.append(
            _breakers([x for x in opened if x.opened_at and now - x.opened_at > _OPEN_LONG])
        )
    return found


def _unset(names: Sequence[str]) -> Finding:
    if not names:
        return Finding("shared limits", "ok", "Every shared limit that messages name is set.")
    says = f"Nobody has set limits that messages have named: {_some(names)}."
    fix = "Set them, or remove those that no message names any more: laneway shared-limits."
    return Finding("shared limits", "warn", says, fix)


def _breakers(limits: Sequence[SharedLimit]) -> Finding:
    if not limits:
        return Finding("breakers", "ok", "No breaker of a shared limit has been open for long.")
    each = [
        f"{x.name} since {x.opened_at:%Y-%m-%d %H:%M} UTC, {x.waiting} messages wait"
        for x in limits
    ]
    fix = (
        "See in the workers' logs why messages behind it fail. It closes once one completes, and "
        "if it is set anew: laneway shared-limits."
    )
    return Finding("breakers", "warn", f"Breakers stay open: {_some(each, '; ')}.", fix)


def _some(texts: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return between.join(texts[:_SHOWN]) + more
