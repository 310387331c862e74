"""How fast queues move, by the figures that upkeep counts per minute."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laneway import Queue

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
