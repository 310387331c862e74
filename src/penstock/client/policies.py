"""Policies, checked and completed."""

import math
from collections.abc import Mapping
from dataclasses import replace

from penstock.errors import InvalidOption
from penstock.model import Policy
from penstock.names import check_name

from .checks import check_number

_MOST = 2**63 - 1


def checked_policies(policies: Mapping[str, Policy]) -> dict[str, Policy]:
    return {check_name("channel", name): checked(policy) for name, policy in policies.items()}


def checked(policy: Policy) -> Policy:
    """The policy with its default burst; raises InvalidOption for what cannot be."""
    if not isinstance(policy, Policy):
        raise InvalidOption(f"a policy must be a Policy, not {type(policy).__name__}")
    if policy.paused or policy.closing:
        raise InvalidOption("paused and closing are no limits: use pause() and remove()")
    for name, least in (("concurrency", 1), ("burst", 1), ("backlog", 0)):
        value = getattr(policy, name)
        if value is not None:
            check_number(name, value, least, _MOST)
    _check_real("weight", policy.weight, 0.01, 1000)
    if policy.rate is None:
        if policy.burst is not None:
            raise InvalidOption("burst goes with rate: give a rate too")
        return policy
    _check_real("rate", policy.rate, 1e-6, 1e9)
    if policy.burst is None:
        return replace(policy, burst=max(1, math.ceil(policy.rate)))
    return policy


def _check_real(what: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOption(f"{what} must be a number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidOption(f"{what} is {value}: it must be between {least} and {most}")
