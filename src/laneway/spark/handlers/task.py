"""One task of handlers on executors: takes its messages over, runs the handlers, settles each."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from laneway.errors import ConnectionUnavailable
from laneway.model import ClaimStatus, Settled
from laneway.spark.store import connected
from laneway.spark.streams.owner import Item
from laneway.stores import StoreAddress
from laneway.worker.definition import WorkerDefinition
from laneway.worker.job import Job
from laneway.worker.run.runtime import Preclaimed, run_preclaimed
from laneway.worker.telemetry.observer import OutcomeName

_CLAIMED_COLUMNS = 19  # then come the times of the lease
_RETRY_AFTER = 0.5  # seconds


@dataclass(frozen=True)
class HandlerTask:
    """Holds no connection, because it is sent to executors."""

    address: StoreAddress
    definition: WorkerDefinition

    def run(self, items: Sequence[Item]) -> Counter[str]:
        """Returns the number of messages by outcome. Messages that another attempt has taken over
        are left to it: a retried or speculative task runs nothing twice."""
        counts = _Counts()
        if items:
            work = run_preclaimed(self.definition, len(items), lambda: self._take(items), [counts])
            asyncio.run(work)
        return counts.counts

    def _take(self, items: Sequence[Item]) -> list[Preclaimed]:
        """Waits while the database is unavailable: the stream holds these leases meanwhile."""
        ids, fences = [id for id, _ in items], [fence for _, fence in items]
        deadline = time.monotonic() + self.definition.options.lease.total_seconds()
        while True:
            try:
                with connected(self.address) as store:
                    rows = store.ask("take", ids=ids, fences=fences)
            except ConnectionUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_AFTER)
            else:
                return [Preclaimed(row[:_CLAIMED_COLUMNS], *row[_CLAIMED_COLUMNS:]) for row in rows]


class _Counts:
    """An observer that adds up."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None:
        pass

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        self.counts[outcome] += 1

    def lost(self, job: Job) -> None:
        self.counts["lost"] += 1

    def settled(self, job: Job, result: Settled | None) -> None:
        pass
