"""Limits that messages of any channels and queues share: how a message names them.

A message carries the names in its headers, so that they survive retries, redrives and copies, and
cost those who have none nothing. See docs/decisions/0021-shared-limits.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from .errors import DecodeError, InvalidName, InvalidOption, shown
from .limits import burst_for
from .model import KEEP, Keep
from .names import check_name
from .payload import decode_json
from .plan import Plan

LIMITS = "laneway-limits"
"""The header: a list of names."""

MOST = 4
"""How many limits a message may name."""

_NAME_BYTES = 100
_QUOTED = f'"{LIMITS}"'


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """A shared limit, and what runs and waits behind it (counted to 10,000). ``resting_until``: a
    handler raised Throttled, and nothing starts before that."""

    name: str
    concurrency: int | None = None
    rate: float | None = None
    burst: int | None = None
    resting_until: datetime | None = None
    running: int = 0
    waiting: int = 0

    @property
    def limited(self) -> bool:
        """Whether it holds anything back. False if messages name it and nobody has set it."""
        return self.concurrency is not None or self.rate is not None


class SharedLimitChange(NamedTuple):
    """The limits to set, or to remove with None; KEEP leaves one alone."""

    concurrency: int | Keep | None = KEEP
    rate: float | Keep | None = KEEP
    burst: int | Keep | None = KEEP

    @property
    def named(self) -> list[str]:
        """Which of them it changes."""
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


class SharedLimitVerbs(Protocol):
    """What every engine can do with them."""

    def set_shared_limit(self, name: str, change: SharedLimitChange) -> Plan[SharedLimit]:
        """Changes what is named; raises InvalidOption if a burst has no rate to go with."""
        ...

    def rest_shared_limit(self, name: str, length: timedelta) -> Plan[None]:
        """Nothing starts behind it for ``length``; a rest that lasts longer stays as it is."""
        ...

    def remove_shared_limit(self, name: str) -> Plan[bool]:
        """Whether there was one. What names it is not held back by it any more."""
        ...

    def shared_limits(self) -> Plan[list[SharedLimit]]:
        """By name; also those that messages name and nobody has set."""
        ...

    def limited_channels(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, str]]:
        """Those of the channels in which something waits for shared limits, and their names."""
        ...


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


def names_in(limits: str) -> Sequence[str]:
    return limits.split(",")


def why_held(limits: str, known: Mapping[str, SharedLimit]) -> str:
    """What a channel waits for, in words: the first of these limits that is full."""
    found = [known[name] for name in names_in(limits) if name in known]
    for limit in found:
        if limit.resting_until is not None:
            return f"limit {limit.name}: rests until {limit.resting_until:%H:%M:%S} UTC"
        if limit.concurrency is not None and limit.running >= limit.concurrency:
            return f"limit {limit.name}: {limit.running} of {limit.concurrency} running"
    for limit in found:
        if limit.rate is not None:
            return f"limit {limit.name}: {limit.rate:g} starts a second"
    return f"limit {limits}"
