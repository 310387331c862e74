"""Handlers on the cluster: the driver claims and holds, tasks take over, run and settle.

A message belongs to the stream until a task takes it over, which only one attempt can; from then on
it is that process's, with a lease that lives as long as the process does. See docs/decisions/0010.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.errors import InvalidOption
from penstock.worker.kit import Kit
from penstock.worker.worker import Worker

from .options import parse
from .stream_owner import Item
from .task_handling import Task

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("penstock.spark")

_RESULT = "outcome string, n bigint"
Batches = Iterator["pyarrow.RecordBatch"]


def handle(frame: "DataFrame", worker: Worker) -> Counter[str]:
    """Runs the worker's handlers on a batch of a claim stream, for ``foreachBatch``; answers how
    many messages got which outcome.

    Each message is settled by its handler's outcome; what the frame leaves out is completed with
    the batch.

    >>> stream.writeStream.foreachBatch(lambda frame, _: handle(frame, worker))
    """
    task = task_for(worker)

    def run(batches: Batches) -> Batches:
        items = [
            (row["id"], row["fence"])
            for batch in batches
            for row in batch.select(["id", "fence"]).to_pylist()
        ]
        yield from _counted(task.run(items))

    return _added(frame.select("id", "fence").mapInArrow(run, _RESULT))


def run_parts(spark: "SparkSession", task: Task, parts: Sequence[Sequence[Item]]) -> Counter[str]:
    """One job with a task for each part."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from _counted(task.run(parts[place]))

    places = spark.range(0, len(parts), 1, len(parts))
    return _added(places.mapInArrow(run, _RESULT))


def task_for(worker: Worker) -> Task:
    """Refuses a worker that cannot be sent to executors, before anything is claimed."""
    kit = worker.kit()
    if not kit.handlers.all():
        raise InvalidOption("the worker has no handler: register one with @worker.handler")
    options = parse({"url": kit.address.url, "schema": kit.address.schema}, "claim stream")
    task = Task(options.address, kit)
    _check_sendable(task, kit)
    return task


def _check_sendable(task: Task, kit: Kit) -> None:
    from pyspark import cloudpickle

    dumps: Callable[[object], bytes] = cloudpickle.dumps
    try:
        dumps(task)
    except Exception as error:
        names = ", ".join(handler.name for handler in kit.handlers.all())
        raise InvalidOption(
            f"the handlers cannot be sent to executors ({error}): put {names} into a module that "
            "every node can import"
        ) from error


def _counted(counts: Counter[str]) -> Batches:
    import pyarrow

    yield pyarrow.RecordBatch.from_pydict(
        {"outcome": list(counts), "n": list(counts.values())},
        schema=pyarrow.schema([("outcome", pyarrow.string()), ("n", pyarrow.int64())]),
    )


def _added(result: "DataFrame") -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in result.collect():
        counts[row.outcome] += row.n
    return counts
