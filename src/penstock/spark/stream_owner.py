"""One process's hold on a stream: its epoch, its heartbeat, and the verbs that show the epoch."""

import logging
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from penstock.errors import DatabaseFailed, PenstockError

from .connections import ask, connected
from .options import Address

_log = logging.getLogger("penstock")
_UPKEEP_EVERY = 5.0  # seconds
_TAKEN_OVER = "PNE01"  # see hold_stream_v1

Item = tuple[int, int]


class StreamOwner:
    """Opening raises the stream's epoch: a process that had it before can claim and complete no
    more, however long it lives on. Leases are extended while this one lives."""

    def __init__(
        self, address: Address, name: str, queues: Sequence[str], lease: timedelta
    ) -> None:
        self.name = name
        self._queues = list(queues)
        self._address = address
        self._lease = lease
        self._floors: str | None = None
        self._next_upkeep = 0.0
        self._stopped = threading.Event()
        self._blanks = {"schema": address.schema, "stream": self.name}
        rows = self._ask("stream_open", lease=self._lease)
        self._blanks |= {"epoch": rows[0][0], "query": rows[0][1]}
        threading.Thread(target=self._beat, name="penstock-heartbeat", daemon=True).start()

    @property
    def query(self) -> str:
        return str(self._blanks["query"])

    def begin(self) -> None:
        """A query without a checkpoint: what an earlier one left goes back to its channels."""
        new = secrets.token_hex(8)
        self._ask("stream_begin", new_query=new)
        self._blanks["query"] = new

    def check(self, query: str) -> None:
        """Refuses the checkpoint of another query."""
        self._ask("stream_hold", query=query)

    def claim(self, seq: int, limit: int) -> tuple[int, str]:
        """Seals the next batch: how many messages are in it, and the claim's answer. One that was
        sealed before, and never came into Spark's log, is answered as it is: "sealed"."""
        self._upkeep_if_due()
        for _ in range(5):
            n, answer, self._floors = self._ask(
                "stream_claim",
                seq=seq,
                queues=self._queues,
                limit=limit,
                lease=self._lease,
                floors=self._floors,
            )[0]
            if n or answer != "busy":
                break
            time.sleep(0.05)
        return int(n), answer

    def items(self, seq: int) -> list[Item]:
        """The messages of a batch, with their fences, that nobody has taken over."""
        return [(row[0], row[1]) for row in self._ask("stream_items", seq=seq)]

    def complete(self, through: int, query: str) -> None:
        """All batches of ``query`` up to ``through``; refuses the checkpoint of another query."""
        completed, lost = self._ask("stream_complete", through=through, query=query)[0]
        if lost:
            _log.warning(
                "stream %s: %s of %s leases ran out before their batch was committed; "
                "those messages are delivered again: use a longer lease",
                *(self.name, lost, completed + lost),
            )

    def waiting(self) -> int:
        return int(self._ask("stream_waiting", queues=self._queues)[0][0])

    def stop(self) -> None:
        self._stopped.set()

    def _ask(self, verb: str, **more: Any) -> Any:
        with connected(self._address) as connection:
            return ask(connection, verb, **{**self._blanks, **more})

    def _beat(self) -> None:
        """Until the process ends or another one takes the stream. Whatever else the database
        refuses, a timeout or a lock, it may grant the next time."""
        while not self._stopped.wait(self._lease.total_seconds() / 3):
            try:
                self._beat_once()
            except PenstockError as error:
                if isinstance(error, DatabaseFailed) and error.sqlstate == _TAKEN_OVER:
                    return
                _log.warning("stream %s: no heartbeat: %s", self.name, error)

    def _beat_once(self) -> None:
        self._ask("stream_extend", lease=self._lease)

    def _upkeep_if_due(self) -> None:
        if time.monotonic() >= self._next_upkeep:
            self._next_upkeep = time.monotonic() + _UPKEEP_EVERY
            with suppress(DatabaseFailed):
                self._ask("upkeep")
