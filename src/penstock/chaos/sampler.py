"""Looks at snapshots while the run is on: what must hold at every instant."""

import threading
from types import TracebackType
from typing import Any, Self

from penstock import PenstockError, Queue

from .ledger import Ledger
from .stage import SWING, Stage, ask, sql

EVERY = 0.1


class Sampler:
    """``over_limit`` is not asked of channels whose limit is lowered while they are busy."""

    def __init__(self, stage: Stage, queue: Queue, ledger: Ledger) -> None:
        self._stage = stage
        self._queue = queue
        self._ledger = ledger
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._count = 0

    def _watch(self) -> None:
        while not self._stopping.wait(EVERY):
            try:
                self._look()
            except PenstockError:
                continue  # the server is down, or a lock is held: nothing was seen
            self._count += 1

    def _look(self) -> None:
        for queue, name, held, limit in self._ask("over_limit"):
            if not name.startswith(SWING):
                text = f"{queue}/{name} has {held} leases, {limit} allowed"
                self._ledger.note("violation", text=text)
        for id, trouble in self._ask("two_states"):
            self._ledger.note("violation", text=f"message {id} {trouble}")

    def _ask(self, name: str) -> list[tuple[Any, ...]]:
        rows = self._queue._core.run(ask(sql(self._stage.engine, name)))
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
        self._ledger.note("sampled", count=self._count)
