"""The queue as a stream: claimed messages become rows, and are completed when Spark has committed
their batch. The stream holds their leases, and one process owns the stream.

Spark asks for the next offset only when the batch before it is in its commit log, so batches are
completed there. Spark's call of ``commit`` comes later, and never for the last batch of an
AvailableNow run.
"""

import logging
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from laneway.errors import DatabaseFailed, InvalidOption, LanewayError
from laneway.spark.read.reader import Query, QueryReader
from laneway.spark.read.tables import TABLES
from laneway.stores import StoreAddress

from .errors import brief_errors
from .options import SparkOptions
from .store import connected

_log = logging.getLogger("laneway")


class PollInterval:
    """Spark asks a stream about a hundred times a second whether there is more. After a look that
    found nothing, the database is not asked again for ``every``."""

    def __init__(self, every: timedelta) -> None:
        self._every = every.total_seconds()
        self._next = 0.0

    def wait(self) -> None:
        """Returns at once, unless the last look was empty and recent."""
        time.sleep(max(0.0, self._next - time.monotonic()))

    def found(self, anything: bool) -> None:
        self._next = 0.0 if anything else time.monotonic() + self._every


_SEEN_EVERY = 30.0  # seconds between two signs of life of a stream that has nothing to read


class StreamRegistration:
    """The name of a history stream in the database: purge and retention wait until it has read.

    Spark asks for the next offset only when the batch before it is in its commit log, so what comes
    before the start of the next batch is read for certain.
    """

    def __init__(self, options: SparkOptions) -> None:
        self._address = options.address
        self._shown = {"stream": options["stream"], "patience": options["patience"]}
        self._noted: tuple[int, int] | None = None
        self._next = 0.0

    def note(self, position: tuple[int, int]) -> None:
        """Everything up to there is read."""
        if position == self._noted:
            return
        if self._shown["stream"] is not None:
            self._register(position, 0)
        elif self._noted is None and position > (0, 0):
            self._warn_if_gone(position)
        self._noted, self._next = position, 0.0

    def note_idle(self, position: tuple[int, int], settled: int) -> None:
        """Before that transaction there is nothing else that this stream wants."""
        if self._shown["stream"] is not None and time.monotonic() >= self._next:
            self._register(position, settled)
            self._next = time.monotonic() + _SEEN_EVERY

    def _register(self, position: tuple[int, int], through: int) -> None:
        xid, id = position
        name = self._shown["stream"]
        with connected(self._address) as store:
            rows = store.ask("read_history", xid=xid, id=id, through=through, **self._shown)
        answer = rows[0][0]
        if answer == "missed":
            raise InvalidOption(
                f"history that stream {name} had not read was deleted, because nothing was seen of "
                "the stream for longer than its patience, or by force; to go on without it, run "
                f"laneway lake streams --forget {name} and start again"
            )
        if answer == "behind":
            raise InvalidOption(
                f"stream {name} has been further than this checkpoint: another query runs under "
                "its name, or the checkpoint is an old one; give each query a name of its own, or "
                "start without the checkpoint"
            )

    def _warn_if_gone(self, position: tuple[int, int]) -> None:
        with connected(self._address) as store:
            rows = store.ask("history_has", xid=position[0], id=position[1])
        if not rows[0][0]:
            _log.warning(
                "the history begins after the checkpoint of this stream: rows that it had not read "
                "may have been deleted; with the option 'stream' they are kept for it"
            )


_UPKEEP_EVERY = 5.0  # seconds
_TAKEN_OVER = "PNE01"  # see hold_stream_v1

Item = tuple[int, int]


class StreamOwner:
    """Opening a stream raises its epoch, so that the process that owned it before can neither
    claim nor complete any more. Leases are extended while this process lives."""

    def __init__(
        self, address: StoreAddress, name: str, queues: Sequence[str], lease: timedelta
    ) -> None:
        self.name = name
        self._queues = list(queues)
        self._address = address
        self._lease = lease
        self._floors: str | None = None
        self._next_upkeep = 0.0
        self._stopped = threading.Event()
        self._shown: dict[str, Any] = {"stream": self.name}
        rows = self._ask("stream_open", lease=self._lease)
        self._shown |= {"epoch": rows[0][0], "query": rows[0][1]}
        threading.Thread(target=self._beat, name="laneway-heartbeat", daemon=True).start()

    @property
    def query(self) -> str:
        return str(self._shown["query"])

    def begin(self) -> None:
        """Starts a query without a checkpoint; messages of an earlier one go back to their
        channels."""
        new = secrets.token_hex(8)
        self._ask("stream_begin", new_query=new)
        self._shown["query"] = new

    def check(self, query: str) -> None:
        """Refuses the checkpoint of another query."""
        self._ask("stream_hold", query=query)

    def claim(self, seq: int, limit: int) -> tuple[int, str]:
        """Claims and seals the next batch. Returns its number of messages and the claim's status.
        A batch that was sealed before but is not in Spark's log comes back as it is: "sealed"."""
        self._upkeep_if_due()
        for _ in range(5):
            n, status, self._floors = self._ask(
                "stream_claim",
                seq=seq,
                queues=self._queues,
                limit=limit,
                lease=self._lease,
                floors=self._floors,
            )[0]
            if n or status != "busy":
                break
            time.sleep(0.05)
        return int(n), status

    def items(self, seq: int) -> list[Item]:
        """The messages of a batch that no task has taken over, with their fences."""
        return [(row[0], row[1]) for row in self._ask("stream_items", seq=seq)]

    def complete(self, through: int, query: str) -> None:
        """Completes all batches of ``query`` up to ``through``; refuses the checkpoint of another
        query."""
        completed, lost = self._ask("stream_complete", through=through, query=query)[0]
        if lost:
            _log.warning(
                "stream %s: %s of %s leases expired before their batch was committed; "
                "those messages are delivered again: use a longer lease",
                *(self.name, lost, completed + lost),
            )

    def waiting(self) -> int:
        return int(self._ask("stream_waiting", queues=self._queues)[0][0])

    def stop(self) -> None:
        self._stopped.set()

    def _ask(self, name: str, **more: Any) -> Any:
        with connected(self._address) as store:
            return store.ask(name, **{**self._shown, **more})

    def _beat(self) -> None:
        """Runs until the process ends or another one takes the stream over. After any other error,
        such as a timeout or a lock, the next heartbeat may succeed."""
        while not self._stopped.wait(self._lease.total_seconds() / 3):
            try:
                self._beat_once()
            except LanewayError as error:
                if isinstance(error, DatabaseFailed) and error.sqlstate == _TAKEN_OVER:
                    return
                _log.warning("stream %s: the heartbeat failed: %s", self.name, error)

    def _beat_once(self) -> None:
        self._ask("stream_extend", lease=self._lease)

    def _upkeep_if_due(self) -> None:
        if time.monotonic() >= self._next_upkeep:
            self._next_upkeep = time.monotonic() + _UPKEEP_EVERY
            with suppress(DatabaseFailed):
                self._ask("upkeep")


Offset = dict[str, Any]


@brief_errors
class ClaimStream(QueryReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the number of a batch within a query: ``{"seq": 3, "query": "…"}``."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        super().__init__(options, "claims", schema)
        self._poll = PollInterval(options["poll"])
        self._owner: StreamOwner | None = None
        self._begun = False
        # An AvailableNow run claims as many messages as are waiting when it begins, and no more.
        self._bounded = False
        self._left: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Always the same: a replay of the first batch starts here too."""
        return {"seq": 0, "query": ""}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.options["maxMessagesPerTrigger"])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bounded = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Completes all batches up to ``start``, then claims the next one."""
        owner = self._owner_at(start)
        if self._bounded and self._left is None:
            self._left = owner.waiting()
        self._poll.wait()
        got, status = owner.claim(start["seq"] + 1, self._most(limit))
        self._poll.found(got > 0)
        if self._left is not None and status != "sealed":
            self._left = self._left - got if got else 0
        return {"seq": start["seq"] + 1, "query": owner.query} if got else start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["seq"] == end["seq"]:
            return []
        owner = self._owned()
        owner.check(end["query"])
        with connected(self.options.address) as store:
            batches = store.ask(
                "claim_cuts", stream=owner.name, from_seq=start["seq"], to_seq=end["seq"]
            )
            return [
                Query(
                    store.text(
                        "claim_rows",
                        columns=self.columns,
                        stream=owner.name,
                        seq=seq,
                        from_place=place,
                        to_place=place + self._rows,
                    )
                )
                for seq, last in batches
                for place in range(0, last, self._rows)
            ]

    def stop(self) -> None:
        if self._owner is not None:
            self._owner.stop()

    def _owned(self) -> StreamOwner:
        """Spark creates readers in many processes; only the one that it asks for offsets and
        partitions owns the stream."""
        if self._owner is None:
            options = self.options
            queue = options["queue"] or "default"
            self._owner = StreamOwner(
                options.address, options["stream"] or queue, [queue], options["lease"]
            )
        return self._owner

    def _owner_at(self, start: Offset) -> StreamOwner:
        owner = self._owned()
        if start["seq"] > 0:
            owner.complete(start["seq"], start["query"])
        elif not self._begun:
            owner.begin()
            self._begun = True
        return owner

    def _most(self, limit: ReadLimit) -> int:
        most: int = self.options["maxMessagesPerTrigger"]
        if isinstance(limit, ReadMaxRows):
            most = min(most, limit.max_rows)
        return most if self._left is None else min(most, self._left)

    @property
    def _rows(self) -> int:
        return int(self.options["rowsPerPartition"] or TABLES["claims"].rows_per_partition)
