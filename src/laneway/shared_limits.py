"""Limits that messages of any channels and queues share: how a message names them, and how they
adapt and break.

A message carries the names in its headers, so that they survive retries, redrives and copies, and
cost those who have none nothing. See docs/decisions/0021-shared-limits.md.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from .durations import to_seconds
from .errors import DecodeError, InvalidName, InvalidOption, shown
from .limits import Adapt, AttemptEnd, Breaker, burst_for
from .model import KEEP, Keep
from .names import check_name
from .payload import decode_json

LIMITS = "laneway-limits"
"""The header: a list of names."""

MOST = 4
"""How many limits a message may name."""

_NAME_BYTES = 100
_QUOTED = f'"{LIMITS}"'


_KNOWN = 10.0  # seconds

SETTINGS = (
    *("concurrency", "rate", "burst", "adapt_min", "adapt_max"),
    *("failures", "window", "minimum", "pause"),
)
BreakerState = Literal["closed", "open", "probing"]


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """A shared limit, and what runs and waits behind it (counted to 10,000).

    ``resting_until``: a handler raised Throttled, and nothing starts before that. ``adapted``: the
    concurrency that it has found. ``opened_at``: since when its breaker is open, ``probe_at``: when
    the next one is let through; ``ended`` and ``failed``: attempts in the breaker's window.
    ``state`` is the breaker's; "probing": one at a time is let through. ``in_force``: how many may
    run at once now, None if any number; beside what ran when the breaker opened."""

    name: str
    concurrency: int | None = None
    rate: float | None = None
    burst: int | None = None
    resting_until: datetime | None = None
    running: int = 0
    waiting: int = 0
    adapt: Adapt | None = None
    adapted: int | None = None
    breaker: Breaker | None = None
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    ended: int = 0
    failed: int = 0
    state: BreakerState | None = field(init=False, compare=False)
    in_force: int | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        state: BreakerState | None = None if self.breaker is None else "closed"
        if self.opened_at is not None:
            state = "probing" if self.probe_at is None else "open"
        number = self.concurrency if self.adapted is None else self.adapted
        object.__setattr__(self, "state", state)
        object.__setattr__(self, "in_force", number if self.opened_at is None else 1)

    @property
    def limited(self) -> bool:
        """Whether it holds anything back. False if messages name it and nobody has set it."""
        set_to = (self.concurrency, self.rate, self.adapt, self.breaker)
        return any(value is not None for value in set_to)

    @property
    def settings(self) -> dict[str, float | None]:
        """What it was set to, in plain numbers and seconds: the fields of forms."""
        adapt, breaker = self.adapt, self.breaker
        bounds = (None, None) if adapt is None else (adapt.min, adapt.max)
        rule: tuple[float | None, ...] = (None,) * 4
        if breaker is not None:
            window, pause = to_seconds(breaker.window), to_seconds(breaker.pause)
            rule = (breaker.failures, window, breaker.minimum, pause)
        values = (self.concurrency, self.rate, self.burst, *bounds, *rule)
        return dict(zip(SETTINGS, values, strict=True))


def shared_limit_of(row: Sequence[Any]) -> SharedLimit:
    """From what an engine reads: the fields in order, with those of Adapt and Breaker."""
    name, concurrency, rate, burst, resting_until, running, waiting, least, most, adapted = row[:10]
    failures, window, minimum, pause, opened_at, probe_at, ended, failed = row[10:]
    return SharedLimit(
        name,
        concurrency,
        rate,
        burst,
        resting_until,
        running,
        waiting,
        None if least is None else Adapt(least, most),
        adapted,
        None if window is None else Breaker(failures, window, minimum, pause),
        opened_at,
        probe_at,
        ended,
        failed,
    )


class LimitNote(NamedTuple):
    """How an attempt behind a limit ends."""

    name: str
    id: int
    fence: int
    outcome: AttemptEnd


class PlainLimits:
    """Limits that neither adapt nor have a breaker, as far as a client knows: how messages end
    behind them is not noted. It asks again after ten seconds, so that this costs nothing."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def learn(self, names: Iterable[str]) -> None:
        until = time.monotonic() + _KNOWN
        self._until |= dict.fromkeys(names, until)

    def forget(self, name: str) -> None:
        """It is being changed."""
        self._until.pop(name, None)

    def __contains__(self, name: str) -> bool:
        until = self._until.get(name)
        return until is not None and time.monotonic() < until


class SharedLimitChange(NamedTuple):
    """What to set, or to remove with None; KEEP leaves it alone."""

    concurrency: int | Keep | None = KEEP
    rate: float | Keep | None = KEEP
    burst: int | Keep | None = KEEP
    adapt: Adapt | Keep | None = KEEP
    breaker: Breaker | Keep | None = KEEP

    @property
    def named(self) -> list[str]:
        """What it changes."""
        return [name for name, value in self._asdict().items() if value is not KEEP]

    def applied(
        self, concurrency: int | None, rate: float | None, burst: int | None
    ) -> tuple[int | None, float | None, int | None]:
        """What holds afterwards. A new rate has a burst of its own, unless one is named."""
        if self.burst is not KEEP:
            burst = self.burst
        elif self.rate is not KEEP:
            burst = None
        rate = rate if self.rate is KEEP else self.rate
        concurrency = concurrency if self.concurrency is KEEP else self.concurrency
        return concurrency, rate, burst_for(rate, burst)


def check_limit_name(value: object) -> str:
    """As other names, shorter and without a comma."""
    name = check_name("limit", value)
    if "," in name or len(name.encode()) > _NAME_BYTES:
        raise InvalidName(
            f"the limit {shown(name)} has a comma or more than {_NAME_BYTES} bytes: choose another "
            "name"
        )
    return name


def check_limits(value: object) -> list[str]:
    """What ``limits=`` of a publish says, each name once, sorted."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidOption(f"limits is a list of names, not {shown(value)}")
    names = sorted({check_limit_name(name) for name in value})
    if len(names) > MOST:
        raise InvalidOption(f"a message may name {MOST} limits, not {len(names)}")
    return names


def limits_of(headers: str | None) -> str | None:
    """The names in a message's headers, sorted and with commas between; None if there are none.
    Anybody can write any headers, in SQL even such as cannot be read: what is no list of names is
    nothing."""
    if headers is None or _QUOTED not in headers:
        return None
    try:
        found = decode_json(headers.encode())
        names = found.get(LIMITS) if isinstance(found, dict) else None
        return ",".join(check_limits(names)) or None
    except (DecodeError, InvalidName, InvalidOption):
        return None


def breaker_words(limit: SharedLimit) -> str:
    """How its breaker is; nothing without one."""
    if limit.state is None:
        return ""
    lately = f", {limit.failed} of {limit.ended} failed" if limit.ended else ""
    since = "" if limit.opened_at is None else f" since {limit.opened_at:%H:%M:%S} UTC"
    until = "" if limit.probe_at is None else f", next one at {limit.probe_at:%H:%M:%S} UTC"
    return f"{limit.state}{since}{until}{lately}"


def names_in(limits: str) -> Sequence[str]:
    return limits.split(",")


def why_held(limits: str, known: Mapping[str, SharedLimit]) -> str:
    """What a channel waits for, in words: the first of these limits that is full."""
    found = [known[name] for name in names_in(limits) if name in known]
    for limit in found:
        if limit.probe_at is not None:
            return f"limit {limit.name}: breaker open until {limit.probe_at:%H:%M:%S} UTC"
        if limit.resting_until is not None:
            return f"limit {limit.name}: rests until {limit.resting_until:%H:%M:%S} UTC"
        if limit.state == "probing":
            return f"limit {limit.name}: breaker lets one through at a time"
        if limit.in_force is not None and limit.running >= limit.in_force:
            return f"limit {limit.name}: {limit.running} of {limit.in_force} running"
    for limit in found:
        if limit.rate is not None:
            return f"limit {limit.name}: {limit.rate:g} starts a second"
    return f"limit {limits}"
