"""Why a channel's messages wait: the first reason that holds, the one to look at first."""

from datetime import datetime
from typing import NamedTuple

from laneway.inspection import ChannelInfo
from laneway.web.rendering import clock_time, length, number

_STARVED = 60.0  # seconds


class Why(NamedTuple):
    """``bad`` if somebody has to do something."""

    text: str
    bad: bool = False


def why(info: ChannelInfo, now: datetime) -> Why:
    """The engine says which limit holds; the rest is told by the counts. No message is read."""
    stats, policy, reason = info.stats, info.policy, info.waits_for
    if reason == "closing" or policy.closing:
        return Why("being removed")
    if reason == "queue paused":
        return Why("its queue is paused", bad=stats.waiting > 0)
    if policy.throttled and policy.paused_until:
        return Why(f"throttled until {clock_time(policy.paused_until)}")
    if reason == "paused" or policy.paused:
        until = f" until {clock_time(policy.paused_until)}" if policy.paused_until else ""
        return Why(f"paused{until}", bad=stats.waiting > 0)
    if reason and reason.startswith("limit "):
        return Why(reason)
    if not stats.waiting:
        return Why("not due yet" if stats.scheduled else "nothing waits")
    if reason and reason.startswith("time "):
        return Why(f"has had {reason.split()[1]} s of worker time more than others, by weight")
    if reason == "concurrency":
        return Why(f"concurrency: {number(stats.leased)} of {number(policy.concurrency)} running")
    if reason == "rate" or policy.rate is not None:
        # Between two starts nothing holds it back for a moment.
        return Why(f"rate: {number(policy.rate)} starts a second")
    age = (now - stats.oldest_due).total_seconds() if stats.oldest_due else 0.0
    if stats.leased == 0 and age > _STARVED:
        return Why(f"nothing runs, the oldest waits for {length(age)}", bad=True)
    return Why("waits for its turn")
