"""The history as a stream: every row exactly once, although ids commit out of order; and how far it
lags behind.

An offset is the position (xid, id) of the last row read. Only rows below the settled watermark are
returned: all transactions with lower numbers have ended, so no earlier row can appear any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from laneway.errors import InvalidOption
from laneway.spark.read.reader import QueryReader, conditions, plan, position_range

from .claim_stream import PollInterval, StreamRegistration
from .errors import brief_errors
from .options import SparkOptions, parse
from .store import connected

Position = tuple[int, int]


@brief_errors
class HistoryStream(QueryReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark asks for offsets on the driver; tasks read the rows between two of them."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        super().__init__(options, "history", schema)
        self._poll = PollInterval(options["poll"])
        self._ahead: list[Position] = []
        self._target: int | None = None
        self._registration = StreamRegistration(options)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return _offset((0, 0))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self.options["maxRowsPerTrigger"]
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with connected(self.options.address) as store:
            self._target = int(store.ask("snapshot")[0][1])

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch. The ends of the batches after it are kept: settled rows stay
        where they are, so a long backlog is scanned once and not once a batch."""
        position = _position(start)
        self._registration.note(position)
        self._ahead = [end for end in self._ahead if end > position]
        if not self._ahead:
            self._poll.wait()
            self._ahead = self._look(position, limit)
            self._poll.found(bool(self._ahead))
        return _offset(self._ahead[0]) if self._ahead else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        with connected(self.options.address) as store:
            filters = conditions(store, self.options, self.what)
            return plan(store, self, _position(start), _position(end), filters)

    def _look(self, start: Position, limit: ReadLimit) -> list[Position]:
        """Where the next batches end."""
        with connected(self.options.address) as store:
            snapshot, settled = store.ask("snapshot")[0]
            _check_reached(start, settled)
            values: dict[str, Any] = {
                "filters": conditions(store, self.options, self.what),
                "settled": settled if self._target is None else self._target,
            }
            last = store.ask("history_last", from_xid=start[0], from_id=start[1], **values)
            if not last:
                self._registration.note_idle(start, values["settled"])
            if not last or not isinstance(limit, ReadMaxRows):
                return [_pair(row) for row in last]
            end = _pair(last[0])
            cuts = store.ask(
                "history_cuts",
                rows=limit.max_rows,
                snapshot=snapshot,
                **position_range(start, end),
                **values,
            )
            return sorted({*(_pair(cut) for cut in cuts), end})


def _check_reached(start: Position, settled: int) -> None:
    """The watermark only grows, so a checkpoint above it is one of another server."""
    if start[0] >= settled:
        raise InvalidOption(
            f"the checkpoint ends at transaction {start[0]:,}, which this server has not reached: "
            "the database was restored from another server's dump; start without the checkpoint"
        )


def _pair(row: tuple[Any, ...]) -> Position:
    return row[0], row[1]


def _position(offset: dict[str, int]) -> Position:
    return offset["xid"], offset["id"]


def _offset(position: Position) -> dict[str, int]:
    return {"xid": position[0], "id": position[1]}


@dataclass(frozen=True, slots=True)
class Watermark:
    """``waiting`` rows of history are committed but cannot be streamed yet, because a transaction
    that began before them is still open: ``holder`` names it, ``held`` is its age."""

    xid: int
    waiting: int
    holder: str | None
    held: timedelta


def watermark(url: str, schema: str = "laneway") -> Watermark:
    """Up to where a history stream can read now, and what it waits for.

    >>> watermark("postgresql://localhost/shop").holder
    'pid 4711 (nightly-report, role shop, idle in transaction)'
    """
    address = parse({"url": url, "schema": schema, "what": "history"}, "history stream").address
    with connected(address) as store:
        xid, waiting, pid, name, role, state, since, now = store.ask("watermark")[0]
    if since is None:
        return Watermark(xid, waiting, None, timedelta(0))
    who = "prepared transaction" if pid is None else f"pid {pid}"
    return Watermark(
        xid, waiting, f"{who} ({name or 'no name'}, role {role}, {state})", now - since
    )
