"""Redriving millions of dead letters with Spark: selected by any condition, in chunks that commit
separately, at a limited rate for each channel."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic, sleep
from typing import TYPE_CHECKING

from laneway.client.shared.checks import check_number
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption
from laneway.stores import StoreAddress

from .errors import plainly
from .options import parse
from .read.tables import column_types
from .store import connected

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

CHUNK = 1000
_ROUND = 5.0  # seconds
_MOST_ATTEMPTS = 2**31 - 1

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Letters:
    """The dead letters of one run: those that died before it began. ``frame`` shows them."""

    address: StoreAddress
    until: datetime
    frame: "DataFrame"


def dead_letters(
    spark: "SparkSession",
    url: str,
    *,
    schema: str = "laneway",
    where: str | None = None,
    until: datetime | None = None,
    **options: str,
) -> Letters:
    """Selects dead letters by the options of a read (``queue``, ``channel``, ``kind``, ``since``)
    and by ``where``, a condition in Spark SQL on the columns of ``dead_letters``.

    Payloads are read only if the condition mentions them.

    >>> letters = dead_letters(spark, url, where="error like '%timeout%' and attempt < 50")
    >>> letters.frame.groupBy("channel").count().show()
    """
    given = {"url": url, "schema": schema, "what": "dead_letters", **options}
    address = parse(given, "read").address
    if address.dialect != "postgresql":
        raise InvalidOption(
            f"Spark redrives on PostgreSQL only, not {address.dialect}: leave out --spark, or use "
            "queue.dead_letters.redrive()"
        )
    with connected(address) as store:
        (now,) = store.ask("clock")[0]
    until = now if until is None else min(until, now)
    mentioned = where is not None and "payload" in where.lower()
    columns = [
        f"{name} {kind}"
        for name, kind in column_types("dead_letters").items()
        if name != "payload" or mentioned
    ]
    reader = spark.read.format("laneway").schema(", ".join(columns)).options(**given)
    with plainly():
        frame = reader.option("until", until.isoformat()).load()
        frame = frame if where is None else frame.where(where)
        # Finds an unknown column now, not in the middle of the work.
        frame.schema  # noqa: B018
    return Letters(address, until, frame)


def redrive(
    letters: Letters,
    *,
    rate: float | None = None,
    max_attempts: int | None = None,
    delay: Duration = 0,
    progress: Progress = lambda done: None,
) -> int:
    """Puts them back into their queues and returns how many; ``rate`` is the maximum per second
    and channel.

    Each chunk is its own transaction. If the run is interrupted, select and call again: a redriven
    message is no dead letter any more, so nothing is lost and nothing is redriven twice.

    >>> redrive(dead_letters(spark, url, where="kind = 'receipt'"), rate=50)
    120000
    """
    if rate is not None and not 0 < rate < math.inf:
        raise InvalidOption(f"rate is {rate}: it must be above zero")
    if max_attempts is not None:
        check_number("max_attempts", max_attempts, 1, _MOST_ATTEMPTS)
    task = _Redrive(letters.address, letters.until, max_attempts, check_duration("delay", delay))
    with plainly():
        if rate is None:
            done = _run(task, letters.frame)
            progress(done)
            return done
        return _in_rounds(task, letters.frame, rate, progress)


@dataclass(frozen=True)
class _Redrive:
    """The work of a task on the ids of its partition."""

    address: StoreAddress
    until: datetime
    max_attempts: int | None
    delay: timedelta

    def __call__(self, batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        import pyarrow

        for batch in batches:
            ids = batch.column(0).to_pylist()
            done = sum(self._chunk(ids[n : n + CHUNK]) for n in range(0, len(ids), CHUNK))
            yield pyarrow.RecordBatch.from_pydict({"n": pyarrow.array([done], pyarrow.int64())})

    def _chunk(self, ids: list[int]) -> int:
        with connected(self.address) as store:
            rows = store.ask(
                "redrive",
                ids=ids,
                until=self.until,
                max_attempts=self.max_attempts,
                delay=self.delay,
            )
        return int(rows[0][0])


def _run(task: _Redrive, frame: "DataFrame") -> int:
    return sum(row.n for row in frame.select("id").mapInArrow(task, "n bigint").collect())


def _in_rounds(task: _Redrive, frame: "DataFrame", rate: float, progress: Progress) -> int:
    """Each round redrives ``rate * seconds`` messages of every channel, oldest first, and lasts
    at least that many seconds."""
    seconds = max(_ROUND, 1 / rate)
    numbered = _numbered(frame, math.floor(rate * seconds)).persist()
    try:
        last = numbered.agg({"round": "max"}).collect()[0][0]
        done, began = 0, monotonic()
        for number in range(0 if last is None else last + 1):
            sleep(max(0.0, began + number * seconds - monotonic()))
            done += _run(task, numbered.where(numbered["round"] == number))
            progress(done)
        return done
    finally:
        numbered.unpersist()


def _numbered(frame: "DataFrame", share: int) -> "DataFrame":
    from pyspark.sql import Window
    from pyspark.sql.functions import floor, row_number

    place = row_number().over(Window.partitionBy("queue", "channel").orderBy("id"))
    return frame.select("id", floor((place - 1) / share).alias("round"))
