"""The history as a stream: every row once, although ids commit out of order.

An offset is the place (xid, id) of the last row read. Only rows of transactions below the settled
watermark are offered: those numbers have all ended, so no row can appear before them later.
"""

from collections.abc import Sequence
from typing import Any

from psycopg import Connection
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.errors import InvalidOption

from .connections import ask, connected
from .options import Options
from .pacing import Pace
from .reading import Fetching, conditions, place_range, plan

Place = tuple[int, int]


class HistoryStream(Fetching, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark asks for offsets on the driver; tasks read the rows between two of them."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, "history", schema)
        self._pace = Pace(options["poll"])
        self._ahead: list[Place] = []
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return _offset((0, 0))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self.options["maxRowsPerTrigger"]
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with connected(self.options.address) as connection:
            self._target = _settled(connection)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch. What one look finds beyond it is remembered: settled rows stay
        where they are, and a long backlog is then scanned once, not once a batch."""
        place = _place(start)
        self._ahead = [end for end in self._ahead if end > place]
        if not self._ahead:
            self._pace.wait()
            self._ahead = self._look(place, limit)
            self._pace.found(bool(self._ahead))
        return _offset(self._ahead[0]) if self._ahead else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        with connected(self.options.address) as connection:
            filters = conditions(self.options, self.what)
            return plan(connection, self, _place(start), _place(end), filters)

    def _look(self, start: Place, limit: ReadLimit) -> list[Place]:
        """Where the next batches end."""
        with connected(self.options.address) as connection:
            snapshot, settled = ask(connection, "snapshot")[0]
            _check_reached(start, settled)
            blanks: dict[str, Any] = {
                "schema": self.options.address.schema,
                "filters": conditions(self.options, self.what),
                "settled": settled if self._target is None else self._target,
            }
            after = {"from_xid": start[0], "from_id": start[1]}
            last = ask(connection, "history_last", **after, **blanks)
            if not last or not isinstance(limit, ReadMaxRows):
                return [_pair(row) for row in last]
            end = _pair(last[0])
            cuts = ask(
                connection,
                "history_cuts",
                rows=limit.max_rows,
                snapshot=snapshot,
                **place_range(start, end),
                **blanks,
            )
            return sorted({*(_pair(cut) for cut in cuts), end})


def _check_reached(start: Place, settled: int) -> None:
    """What was read once was settled, and that only grows: unless it is another server."""
    if start[0] >= settled:
        raise InvalidOption(
            f"the checkpoint ends at transaction {start[0]:,}, which this server has not reached: "
            "the database was restored from another server's dump; start without the checkpoint"
        )


def _settled(connection: Connection[Any]) -> int:
    return int(ask(connection, "snapshot")[0][1])


def _pair(row: tuple[Any, ...]) -> Place:
    return row[0], row[1]


def _place(offset: dict[str, int]) -> Place:
    return offset["xid"], offset["id"]


def _offset(place: Place) -> dict[str, int]:
    return {"xid": place[0], "id": place[1]}
