"""What one task does for handlers on the cluster: take its messages over, run, settle each."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import ConnectionUnavailable
from penstock.model import Answer
from penstock.worker.job import Job
from penstock.worker.kit import Kit
from penstock.worker.portion import Handed, work_on
from penstock.worker.watching import Ending

from .connections import ask, connected
from .options import Address
from .stream_owner import Item

_HANDED = 19  # columns of a claimed row; then come the times of its lease
_AGAIN = 0.5  # seconds


@dataclass(frozen=True)
class Task:
    """It is sent to executors, so it holds no connection."""

    address: Address
    kit: Kit

    def run(self, items: Sequence[Item]) -> Counter[str]:
        """How many messages got which outcome. What another attempt has taken over is left to it:
        a retried or speculative task runs nothing twice."""
        counts = _Counts()
        if items:
            work = work_on(self.kit, len(items), lambda: self._take(items), [counts])
            asyncio.run(work)
        return counts.counts

    def _take(self, items: Sequence[Item]) -> list[Handed]:
        """A database that is away for a moment is waited for: these leases are held meanwhile."""
        ids, fences = [id for id, _ in items], [fence for _, fence in items]
        schema = self.address.schema
        patience = time.monotonic() + self.kit.options.lease.total_seconds()
        while True:
            try:
                with connected(self.address) as connection:
                    rows = ask(connection, "take", schema=schema, ids=ids, fences=fences)
            except ConnectionUnavailable:
                if time.monotonic() > patience:
                    raise
                time.sleep(_AGAIN)
            else:
                return [Handed(row[:_HANDED], *row[_HANDED:]) for row in rows]


class _Counts:
    """A watcher that adds up."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def claimed(self, messages: int, answer: Answer, seconds: float) -> None:
        pass

    def ended(self, job: Job, ending: Ending, seconds: float) -> None:
        self.counts[ending] += 1

    def lost(self, job: Job) -> None:
        self.counts["lost"] += 1
