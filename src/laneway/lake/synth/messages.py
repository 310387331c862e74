"""The published messages: time, tenant, kind, size."""

from dataclasses import dataclass

import numpy as np

from .arrivals import Ints, Window, arrivals
from .tenants import KINDS, SKEW, TENANTS

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
