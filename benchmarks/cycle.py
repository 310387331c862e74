"""Publish, claim and complete in batches, and what each batch cost."""

from collections.abc import Callable
from datetime import timedelta
from statistics import median
from typing import NamedTuple

from laneway.drivers.runner import drive
from laneway.engines.postgresql.engine import PostgresqlEngine
from laneway.model import Draft, HeldLease

from .bench import PAYLOAD
from .meter import Meter, Use

BATCH = 100
_LEASE = timedelta(seconds=60)


class Cost(NamedTuple):
    """Of one claimed message, in the median batch; ``worst`` is the dearest claim."""

    claim: float
    complete: float
    wal: float
    worst: float

    @property
    def buffers(self) -> float:
        return self.claim + self.complete


Names = Callable[[int], str]
"""The channel of the message with this number."""


class Cycle:
    """One client of the queue ``default`` that keeps its floors from claim to claim."""

    def __init__(self, url: str, channel: Names) -> None:
        self._meter = Meter(url)
        self._engine = PostgresqlEngine()
        self._channel = channel
        self._published = 0

    def run(self, batches: int, *, publish: bool = True) -> list[tuple[Use, Use]]:
        """What the claim and the complete of each batch used."""
        return [self._batch(publish) for _ in range(batches)]

    def close(self) -> None:
        self._meter.close()

    def _batch(self, publish: bool) -> tuple[Use, Use]:
        meter, engine = self._meter, self._engine
        if publish:
            drive(engine.messages.publish([self._draft() for _ in range(BATCH)]), meter.execute)
        taken = drive(engine.claims.claim(("default",), BATCH, _LEASE, "bench"), meter.execute)
        claim = meter.used
        if len(taken.rows) != BATCH:
            raise RuntimeError(f"claimed {len(taken.rows)} instead of {BATCH}: {taken.status}")
        drive(
            engine.leases.complete([HeldLease(row[0], row[1]) for row in taken.rows]), meter.execute
        )
        return claim, meter.used

    def _draft(self) -> Draft:
        channel = self._channel(self._published)
        self._published += 1
        binary = "application/octet-stream"
        times = (None, None, None, None, 20)
        return Draft(PAYLOAD, "default", channel, "", binary, None, None, None, 0, *times)


def cost(batches: list[tuple[Use, Use]]) -> Cost:
    claims = [claim.buffers / BATCH for claim, _ in batches]
    return Cost(
        median(claims),
        median(complete.buffers for _, complete in batches) / BATCH,
        median(claim.wal + complete.wal for claim, complete in batches) / BATCH,
        max(claims),
    )
