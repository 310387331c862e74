"""Channels that may start one message each: do claims still fill their batch, and at what price?"""

import time
from typing import NamedTuple

from laneway import NewMessage, Policy, Queue

from .bench import PAYLOAD, Bench, tidy

NO_LIMIT = "no limit"
POLICIES = {
    NO_LIMIT: Policy(),
    "concurrency 1": Policy(concurrency=1),
    "rate, burst 1": Policy(rate=10_000, burst=1),
    "weight 0.1": Policy(weight=0.1),
}
_EACH = 10
_BATCH = 100


class Limited(NamedTuple):
    rate: float
    filled: float
    """Messages a claim in the first half, where enough channels have work."""


def limited(bench: Bench, policy: Policy, channels: int) -> Limited:
    with bench.database() as url, Queue(url, pool_size=1, upkeep_every=None) as queue:
        names = [f"c{number}" for number in range(channels)]
        queue.set_policies(dict.fromkeys(names, policy))
        for _ in range(_EACH):
            queue.publish_many([NewMessage(PAYLOAD, name) for name in names])
        tidy(url)
        return _drained(queue, channels * _EACH)


def _drained(queue: Queue, messages: int) -> Limited:
    left, sizes = messages, []
    began = time.perf_counter()
    while left:
        claim = queue.claim(_BATCH)
        if left > messages // 2:
            sizes.append(len(claim))
        queue.complete(claim)
        left -= len(claim)
    return Limited(messages / (time.perf_counter() - began), sum(sizes) / len(sizes))
