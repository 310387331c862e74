"""One batch of messages for handlers on executors.

The driver claims messages and holds their leases. A task takes its messages over, which only one
attempt can do; from then on that process holds the leases, for as long as it lives. See
docs/decisions/0010.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from laneway.errors import InvalidOption
from laneway.spark.options import parse
from laneway.spark.streams.owner import Item
from laneway.worker.definition import WorkerDefinition
from laneway.worker.worker import Worker

from .task import HandlerTask

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("laneway.spark")

_RESULT = "outcome string, n bigint"
Batches = Iterator["pyarrow.RecordBatch"]


def handle(frame: "DataFrame", worker: Worker) -> Counter[str]:
    """Runs the worker's handlers on a batch of a claim stream, in ``foreachBatch``; returns the
    number of messages by outcome.

    Each message is settled by its handler's outcome. Messages that were filtered out of the frame
    are completed with the batch.

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


def run_parts(
    spark: "SparkSession", task: HandlerTask, parts: Sequence[Sequence[Item]]
) -> Counter[str]:
    """Runs one Spark job with a task for each part."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from _counted(task.run(parts[index]))

    indexes = spark.range(0, len(parts), 1, len(parts))
    return _added(indexes.mapInArrow(run, _RESULT))


def task_for(worker: Worker) -> HandlerTask:
    """Raises InvalidOption for a worker that cannot be sent to executors, before any claim."""
    definition = worker.definition()
    if not definition.handlers.all():
        raise InvalidOption("the worker has no handlers: register one with @worker.task")
    options = parse(
        {"url": definition.address.url, "schema": definition.address.schema}, "claim stream"
    )
    task = HandlerTask(options.address, definition)
    _check_sendable(task, definition)
    return task


def _check_sendable(task: HandlerTask, definition: WorkerDefinition) -> None:
    from pyspark import cloudpickle

    dumps: Callable[[object], bytes] = cloudpickle.dumps
    try:
        dumps(task)
    except Exception as error:
        names = ", ".join(handler.name for handler in definition.handlers.all())
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
