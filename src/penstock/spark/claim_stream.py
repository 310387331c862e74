"""The queue as a stream: messages become rows under the stream's leases, and are completed when
Spark has committed their batch.

Spark asks for the next offset only once the batch before it is in its commit log, so that is where
batches are completed: its own call of ``commit`` comes later, and never for the last batch of an
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

from .connections import ask, connected
from .options import Options
from .pacing import Pace
from .reading import Fetching, Query
from .statements import statement
from .stream_owner import StreamOwner
from .tables import TABLES

Offset = dict[str, Any]


class ClaimStream(Fetching, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is a batch's number inside a query: ``{"seq": 3, "query": "…"}``."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, "claims", schema)
        self._pace = Pace(options["poll"])
        self._owner: StreamOwner | None = None
        self._begun = False
        # An AvailableNow run claims as many messages as wait when it begins, and no more.
        self._bounded = False
        self._left: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """The same whenever it is asked: a replay of the first batch starts here too."""
        return {"seq": 0, "query": ""}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.options["maxMessagesPerTrigger"])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bounded = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Completes all up to ``start``, then claims the next batch."""
        owner = self._at(start)
        if self._bounded and self._left is None:
            self._left = owner.waiting()
        self._pace.wait()
        got, answer = owner.claim(start["seq"] + 1, self._most(limit))
        self._pace.found(got > 0)
        if self._left is not None and answer != "sealed":
            self._left = self._left - got if got else 0
        return {"seq": start["seq"] + 1, "query": owner.query} if got else start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["seq"] == end["seq"]:
            return []
        owner = self._owned()
        owner.check(end["query"])
        blanks = {"schema": self.options.address.schema, "stream": owner.name}
        with connected(self.options.address) as connection:
            span = {"from_seq": start["seq"], "to_seq": end["seq"]}
            batches = ask(connection, "claim_cuts", **span, **blanks)
            return [
                Query(
                    statement(
                        connection,
                        "claim_rows",
                        columns=self.columns,
                        seq=seq,
                        from_place=place,
                        to_place=place + self._rows,
                        **blanks,
                    )
                )
                for seq, last in batches
                for place in range(0, last, self._rows)
            ]

    def stop(self) -> None:
        if self._owner is not None:
            self._owner.stop()

    def _owned(self) -> StreamOwner:
        """Readers are made in many processes; only the one that Spark asks for offsets and
        partitions owns the stream."""
        if self._owner is None:
            options = self.options
            queue = options["queue"] or "default"
            self._owner = StreamOwner(
                options.address, options["stream"] or queue, [queue], options["lease"]
            )
        return self._owner

    def _at(self, start: Offset) -> StreamOwner:
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
