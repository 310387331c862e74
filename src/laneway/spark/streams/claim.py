"""The queue as a stream: claimed messages become rows, and are completed when Spark has committed
their batch. The stream holds their leases.

Spark asks for the next offset only when the batch before it is in its commit log, so batches are
completed there. Spark's call of ``commit`` comes later, and never for the last batch of an
AvailableNow run.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from laneway.spark.options import SparkOptions
from laneway.spark.read.reader import Query, QueryReader
from laneway.spark.read.tables import TABLES
from laneway.spark.store import connected

from .owner import PollInterval, StreamOwner

Offset = dict[str, Any]


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
