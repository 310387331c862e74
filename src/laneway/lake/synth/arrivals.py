"""When messages arrive and how long they wait: daily and weekly cycles, bursts and incidents.

Times are in microseconds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MINUTE = 60_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_WEEK = np.array([1.0, 1.05, 1.02, 1.0, 0.95, 0.45, 0.35])  # from Monday


@dataclass(frozen=True, slots=True)
class Window:
    """The period that the history covers, and its incidents."""

    start: int
    until: int
    calm: bool

    @property
    def length(self) -> int:
        return self.until - self.start

    @property
    def deploy(self) -> tuple[int, int]:
        """A release with a bug, until it is rolled back."""
        begin = self._back(0.2) // HOUR * HOUR
        return begin, begin + min(45 * MINUTE, self.length // 20)

    @property
    def burst(self) -> tuple[int, int]:
        """One tenant publishes very many messages."""
        begin = self._back(0.35) // HOUR * HOUR
        return begin, begin + 12 * MINUTE

    @property
    def slowdown(self) -> tuple[int, int]:
        """A service of a third party is slow, and still is at the end."""
        return self.until - min(2 * HOUR, self.length // 12), self.until

    def _back(self, share: float) -> int:
        return self.until - int(self.length * share)


def intensity(window: Window) -> tuple[Ints, Floats]:
    """The relative number of arrivals in each minute, by hour of the day and day of the week."""
    minutes = np.arange(window.start, window.until, MINUTE, dtype=np.int64)
    hour = (minutes % DAY) / HOUR
    # 1970-01-01 was a Thursday.
    weekday = (minutes // DAY + 3) % 7
    daily = 0.25 + np.exp(-(((hour - 14) / 4.2) ** 2)) + 0.55 * np.exp(-(((hour - 9.5) / 1.5) ** 2))
    return minutes, daily * _WEEK[weekday]


def arrivals(window: Window, n: int, random: np.random.Generator) -> Ints:
    """``n`` times, in order."""
    minutes, weight = intensity(window)
    passed = np.concatenate([[0.0], np.cumsum(weight)])
    edges = np.append(minutes, window.until).astype(np.float64)
    times = np.interp(np.sort(random.random(n)) * passed[-1], passed, edges)
    return np.asarray(times, dtype=np.int64)


class Backlog:
    """A fluid model of a queue: arrivals above the capacity of a minute wait for the next one.

    In the period ``slow`` the capacity is only the share ``left`` of the arrivals.
    """

    def __init__(self, window: Window, published: Ints, slow: tuple[int, int] | None, left: float):
        bins = np.append(
            np.arange(window.start, window.until, MINUTE, dtype=np.int64), window.until
        )
        coming = np.histogram(published, bins)[0].astype(np.float64)
        capacity = np.full(len(coming), max(float(np.quantile(coming, 0.995)) * 0.97, 1.0))
        if slow is not None:
            during = (bins[:-1] >= slow[0]) & (bins[:-1] < slow[1])
            capacity[during] = max(left * float(coming[during].mean()), 0.1)
        sums = np.cumsum(coming - capacity)
        self._waiting = sums - np.minimum(np.minimum.accumulate(sums), 0.0)
        self._capacity = capacity
        self._start = window.start

    def delay(self, due: Ints) -> Floats:
        """How long messages that are due at these times wait, in microseconds."""
        at = np.clip((due - self._start) // MINUTE, 0, len(self._waiting) - 1)
        delay: Floats = self._waiting[at] / self._capacity[at] * MINUTE
        return delay
