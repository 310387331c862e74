"""The published messages of the synthetic history: queues, kinds and tenants; when messages arrive
and how long they wait, with daily and weekly cycles, bursts and incidents.

Times are in microseconds.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of messages. ``share`` of all messages; ``run``: its median running time. The share
    of attempts that fail and are retried (``flaky``), that fail for good (``hopeless``), and that
    are deferred with progress (``steps``)."""

    queue: str
    name: str
    share: float
    run: timedelta
    flaky: float
    hopeless: float = 0.0
    steps: float = 0.0
    size: int = 400
    errors: tuple[tuple[str, str], ...] = ()


def _ms(n: float) -> timedelta:
    return timedelta(milliseconds=n)


_SMTP = (
    ("smtplib.SMTPServerDisconnected", "Connection unexpectedly closed by mx{n}.example.net"),
    ("TimeoutError", "no answer from 10.0.{n}.25:25 after 10 s"),
)
_HTTP = (
    ("httpx.ReadTimeout", "POST https://hooks.example.com/t/{n} timed out"),
    ("httpx.HTTPStatusError", "429 Too Many Requests for tenant {n}"),
    ("ConnectionResetError", "[Errno 104] Connection reset by peer"),
)
_SQL = (("psycopg.errors.SerializationFailure", "could not serialize access, order {n}"),)
_DISK = (("MemoryError", "cannot allocate {n} bytes for the sheet"),)

KINDS = (
    Kind("emails", "receipt", 0.26, _ms(45), 0.012, 0.0003, size=600, errors=_SMTP),
    Kind("emails", "newsletter", 0.20, _ms(30), 0.010, size=2_200, errors=_SMTP),
    Kind("webhooks", "deliver", 0.30, _ms(110), 0.045, 0.0004, size=900, errors=_HTTP),
    Kind("billing", "charge", 0.10, _ms(180), 0.008, 0.0006, size=350, errors=_SQL),
    Kind("billing", "invoice", 0.08, _ms(90), 0.006, size=450, errors=_SQL),
    Kind("exports", "sheet", 0.06, _ms(1_400), 0.020, 0.001, 0.5, size=250, errors=_DISK),
)

HOPELESS = ("ValueError", "address '{n}@' has no domain")
BAD_DEPLOY = (
    "KeyError",
    "Traceback (most recent call last):\n"
    '  File "/app/.venv/lib/python3.11/site-packages/laneway/worker/execute/executor.py", '
    "line 88, in perform\n"
    "    await call(message)\n"
    '  File "/app/shop/billing.py", line {n}, in charge\n'
    '    amount = order["currency_code"]\n'
    '  File "/usr/lib/python3.11/collections/__init__.py", line 1006, in __getitem__\n'
    "KeyError: 'currency_code'",
)
TENANTS = 240
SKEW = 1.15
WORKERS = {"emails": 6, "webhooks": 8, "billing": 4, "exports": 3}
LEASE = timedelta(seconds=30)
MAX_ATTEMPTS = 6


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


NOISY = 0
"""The tenant with the largest share."""


@dataclass(frozen=True, slots=True)
class Messages:
    """One entry for each message, in the order of publishing."""

    published: Ints
    kind: Ints
    tenant: Ints
    priority: Ints
    size: Ints
    due: Ints


def publish(window: Window, n: int, random: np.random.Generator) -> Messages:
    bursting = 0 if window.calm else n // 150
    published = arrivals(window, n - bursting, random)
    kind = random.choice(len(KINDS), n - bursting, p=_shares())
    tenant = _tenants(n - bursting, random)
    if bursting:
        at = random.integers(*window.burst, size=bursting)
        published = np.concatenate([published, at])
        kind = np.concatenate([kind, np.ones(bursting, dtype=np.int64)])
        tenant = np.concatenate([tenant, np.full(bursting, NOISY)])
    order = np.argsort(published, kind="stable")
    published, kind, tenant = published[order], kind[order], tenant[order]
    sizes = np.array([k.size for k in KINDS])[kind] * random.lognormal(0, 0.7, n)
    delayed = random.random(n) < 0.02
    due = published + np.where(delayed, random.integers(1, 1_800_000_000, n), 0)
    priority = (random.random(n) < 0.03).astype(np.int64) * 5
    return Messages(published, kind, tenant, priority, sizes.astype(np.int64) + 2, due)


def _shares() -> list[float]:
    whole = sum(k.share for k in KINDS)
    return [k.share / whole for k in KINDS]


def _tenants(n: int, random: np.random.Generator) -> Ints:
    weight = 1 / np.arange(1, TENANTS + 1) ** SKEW
    return random.choice(TENANTS, n, p=weight / weight.sum())
