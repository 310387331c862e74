"""Policies, checked and completed."""

from collections.abc import Mapping

from laneway.errors import InvalidOption, shown
from laneway.limits import LimitChange, burst_for
from laneway.model import KEEP, Policy
from laneway.names import check_name

from .checks import check_number

_MOST = 2**63 - 1
_RATES = (1e-6, 1e9)
_WEIGHTS = (0.01, 1000)


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
    rate = None if policy.rate is None else _real("rate", policy.rate, *_RATES)
    return Policy(
        _count("concurrency", policy.concurrency, 1),
        rate,
        burst_for(rate, _count("burst", policy.burst, 1)),
        _count("backlog", policy.backlog, 0),
        _real("weight", policy.weight, *_WEIGHTS),
    )


def checked_change(change: LimitChange) -> LimitChange:
    """Raises InvalidOption for what cannot be; whether a burst alone fits is seen with the rate."""
    if not change.named:
        raise InvalidOption(
            "limit() without a limit changes nothing: name concurrency, rate, burst, backlog or "
            "weight"
        )
    rate = change.rate
    if rate is not KEEP and rate is not None:
        rate = _real("rate", rate, *_RATES)
    burst = change.burst if change.burst is KEEP else _count("burst", change.burst, 1)
    if rate is not KEEP and burst is not KEEP:
        burst = burst_for(rate, burst)
    return LimitChange(
        KEEP if change.concurrency is KEEP else _count("concurrency", change.concurrency, 1),
        rate,
        burst,
        KEEP if change.backlog is KEEP else _count("backlog", change.backlog, 0),
        KEEP if change.weight is KEEP else _real("weight", change.weight, *_WEIGHTS),
    )


def _count(what: str, value: int | None, least: int) -> int | None:
    return None if value is None else check_number(what, value, least, _MOST)


def _real(what: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOption(f"{what} must be a number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidOption(f"{what} is {shown(value)}: it must be between {least} and {most}")
    return float(value)
