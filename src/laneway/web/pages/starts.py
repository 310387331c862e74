"""Who was served lately: the attempts that ended since somebody looked, by queue and channel."""

import time
from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple

from laneway.client.sync.queue import Queue
from laneway.inspection import ChannelInfo

_WINDOW = 300.0  # seconds
_MOST = 20_000
_PAGE = 1000
_MOMENT = timedelta(seconds=5)
_ATTEMPTS = frozenset({"completed", "retried", "failed", "expired", "deferred", "dead"})


class ChannelShare(NamedTuple):
    """``due`` is its fair share; None if it takes all that it wants or its own limits allow."""

    info: ChannelInfo
    starts: int
    share: float
    due: float | None


class StartsFollower:
    """Reads on from where it was, at most a page a look. What it cannot keep up with it skips, so
    under load it is a sample."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._position: str | None = None
        self._seen: deque[tuple[float, str, str]] = deque(maxlen=_MOST)
        self._lock = Lock()
        self.since: float | None = None

    def look(self) -> bool:
        """Always True: the shared cache keeps it, so that all viewers look once."""
        with self._lock:
            now = time.time()
            if self._position is None:
                self._position = self._queue.history_since().position
                self.since = now
                return True
            entries, position = self._queue.history_since(self._position, limit=_PAGE)
            behind = len(entries) == _PAGE
            self._position = self._queue.history_since().position if behind else position
            self._seen.extend((now, e.queue, e.channel) for e in entries if e.outcome in _ATTEMPTS)
            while self._seen and self._seen[0][0] < now - _WINDOW:
                self._seen.popleft()
        return True

    def starts(self, queue: str) -> Counter[str]:
        with self._lock:
            return Counter(channel for _, name, channel in self._seen if name == queue)

    @property
    def seconds(self) -> float:
        """How far back the counts go."""
        return 0.0 if self.since is None else min(time.time() - self.since, _WINDOW)


def shares(
    starts: Counter[str], channels: Iterable[ChannelInfo], now: datetime, most: int = 20
) -> list[ChannelShare]:
    """The most served of those channels, and those that wait without being served.

    Who wants no more than it gets, or is held by a limit of its own, has what it may have. The
    rest is for those that wait, in proportion to their weights. What has just come is no wait.
    """
    rows = [info for info in channels if starts[info.channel] or info.stats.waiting]
    total = sum(starts.values())
    part = {info.channel: starts[info.channel] / total if total else 0.0 for info in rows}
    wanting = [info for info in rows if info.waits_for is None and _waits(info, now)]
    left = sum(part[info.channel] for info in wanting)
    weights = sum(info.policy.weight for info in wanting)
    found = [
        ChannelShare(
            info,
            starts[info.channel],
            part[info.channel],
            left * info.policy.weight / weights if info in wanting else None,
        )
        for info in rows
    ]
    return sorted(found, key=lambda s: (-s.starts, -s.info.stats.waiting))[:most]


def _waits(info: ChannelInfo, now: datetime) -> bool:
    oldest = info.stats.oldest_due
    return info.stats.waiting > 0 and (oldest is None or now - oldest > _MOMENT)
