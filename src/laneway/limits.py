"""What ``channel.limit()`` changes of a policy, and what it leaves as it is."""

import math
from typing import NamedTuple

from .errors import InvalidOption
from .model import KEEP, Keep, Policy

_LONGEST_BURST = 100 * 366 * 86_400  # seconds


class LimitChange(NamedTuple):
    """The limits to set, or to remove with None; KEEP leaves one alone."""

    concurrency: int | Keep | None = KEEP
    rate: float | Keep | None = KEEP
    burst: int | Keep | None = KEEP
    backlog: int | Keep | None = KEEP
    weight: float | Keep = KEEP

    @property
    def named(self) -> list[str]:
        """Which limits it changes."""
        return [name for name, value in self._asdict().items() if value is not KEEP]

    def applied(self, policy: Policy) -> Policy:
        """The policy afterwards. A new rate has a burst of its own, unless one is named."""
        rate = policy.rate if self.rate is KEEP else self.rate
        burst = self.burst
        if burst is KEEP:
            burst = policy.burst if self.rate is KEEP else None
        return Policy(
            policy.concurrency if self.concurrency is KEEP else self.concurrency,
            rate,
            burst_for(rate, burst),
            policy.backlog if self.backlog is KEEP else self.backlog,
            policy.weight if self.weight is KEEP else self.weight,
            policy.paused,
            paused_until=policy.paused_until,
            throttled=policy.throttled,
        )


def burst_for(rate: float | None, burst: int | None) -> int | None:
    """The burst that goes with a rate: by default one second's worth."""
    if rate is None:
        if burst is not None:
            raise InvalidOption("burst goes with rate: give a rate too")
        return None
    if burst is None:
        return max(1, math.ceil(rate))
    if burst / rate > _LONGEST_BURST:
        raise InvalidOption(
            f"a burst of {burst} at a rate of {rate} lasts longer than a century: "
            "lower the burst, or leave the rate out"
        )
    return burst
