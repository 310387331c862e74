"""Checks during the run, in snapshots, what must hold at every instant.

Detects stalls of the machine itself: a lease that expires then is not an error.
"""

import threading
import time
from types import TracebackType
from typing import Any, Self

from laneway import LanewayError, Queue

from .config import CHANGING, RunConfig, query, sql
from .ledger import Ledger

STEP = 0.1
LONG = 1.0  # seconds: how late a sleeping thread may wake up


class StallWatch:
    """Records each stall as a fault of all processes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        begun = time.time()
        while not self._stopping.wait(STEP):
            now = time.time()
            if now - begun > LONG:
                self._ledger.record(
                    "fault", kind="stall", target="*", t=begun, span=now - begun + 1
                )
            begun = now

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()


EVERY = 0.1


class Sampler:
    """``over_limit`` skips channels whose limit is lowered while they are busy."""

    def __init__(self, config: RunConfig, queue: Queue, ledger: Ledger) -> None:
        self._config = config
        self._queue = queue
        self._ledger = ledger
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._count = 0

    def _watch(self) -> None:
        while not self._stopping.wait(EVERY):
            try:
                self._sample()
            except LanewayError:
                continue  # the server is down or a lock is held: no sample
            self._count += 1

    def _sample(self) -> None:
        for queue, name, held, limit in self._query("over_limit"):
            if not name.startswith(CHANGING):
                text = f"{queue}/{name} has {held} leases, {limit} allowed"
                self._ledger.record("violation", text=text)
        for id, trouble in self._query("two_states"):
            self._ledger.record("violation", text=f"message {id} {trouble}")

    def _query(self, name: str) -> list[tuple[Any, ...]]:
        rows = self._queue._core.run(query(sql(self._config.engine, name)))
        return [tuple(row) for row in rows]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._ledger.record("sampled", count=self._count)
