"""Policies, checked and completed."""

import math
from collections.abc import Mapping

from penstock.errors import InvalidOption, shown
from penstock.model import Policy
from penstock.names import check_name

from .checks import check_number

_MOST = 2**63 - 1
_LONGEST_BURST = 100 * 366 * 86_400  # seconds


def checked_policies(policies: Mapping[str, Policy]) -> dict[str, Policy]:
    if not isinstance(policies, Mapping):
        raise InvalidOption(
            f"policies must map channels to policies, not be {type(policies).__name__}"
        )
    return {check_name("channel", name): checked(policy) for name, policy in policies.items()}


def checked(policy: Policy) -> Policy:
    """The policy with its default burst; raises InvalidOption for what cannot be."""
    if not isinstance(policy, Policy):
        raise InvalidOption(f"a policy must be a Policy, not {type(policy).__name__}")
    if policy.paused or policy.closing:
        raise InvalidOption("paused and closing are no limits: use pause() and remove()")
    if policy.burst is not None and policy.rate is None:
        raise InvalidOption("burst goes with rate: give a rate too")
    rate = None if policy.rate is None else _real("rate", policy.rate, 1e-6, 1e9)
    burst = _count("burst", policy.burst, 1)
    if rate is not None and burst is not None and burst / rate > _LONGEST_BURST:
        raise InvalidOption(
            f"a burst of {burst} at a rate of {rate} lasts longer than a century: "
            "lower the burst, or leave the rate out"
        )
    return Policy(
        _count("concurrency", policy.concurrency, 1),
        rate,
        max(1, math.ceil(rate)) if burst is None and rate is not None else burst,
        _count("backlog", policy.backlog, 0),
        _real("weight", policy.weight, 0.01, 1000),
    )


def _count(what: str, value: int | None, least: int) -> int | None:
    return None if value is None else check_number(what, value, least, _MOST)


def _real(what: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOption(f"{what} must be a number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidOption(f"{what} is {shown(value)}: it must be between {least} and {most}")
    return float(value)
