"""A worker's handlers on Spark's executors: the driver claims batches and runs each as a Spark job.

The driver claims messages and holds their leases. A task takes its messages over, which only one
attempt can do; from then on that process holds the leases, for as long as it lives. See
docs/decisions/0010.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laneway.client.shared.checks import check_number
from laneway.contract import BATCH
from laneway.durations import Duration, check_duration
from laneway.errors import ConnectionUnavailable, InvalidOption, LanewayError
from laneway.model import ClaimStatus, Settled
from laneway.stores import StoreAddress
from laneway.worker.clock import Backoff
from laneway.worker.definition import WorkerDefinition
from laneway.worker.job import Job
from laneway.worker.run.runtime import Preclaimed, run_preclaimed
from laneway.worker.telemetry.observer import OutcomeName
from laneway.worker.worker import Worker

from .claim_stream import Item, StreamOwner
from .errors import is_outage, plainly, reason
from .options import parse
from .store import connected

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


_CLAIMED_COLUMNS = 19  # then come the times of the lease
_RETRY_AFTER = 0.5  # seconds


@dataclass(frozen=True)
class HandlerTask:
    """Holds no connection, because it is sent to executors."""

    address: StoreAddress
    definition: WorkerDefinition

    def run(self, items: Sequence[Item]) -> Counter[str]:
        """Returns the number of messages by outcome. Messages that another attempt has taken over
        are left to it: a retried or speculative task runs nothing twice."""
        counts = _Counts()
        if items:
            work = run_preclaimed(self.definition, len(items), lambda: self._take(items), [counts])
            asyncio.run(work)
        return counts.counts

    def _take(self, items: Sequence[Item]) -> list[Preclaimed]:
        """Waits while the database is unavailable: the stream holds these leases meanwhile."""
        ids, fences = [id for id, _ in items], [fence for _, fence in items]
        deadline = time.monotonic() + self.definition.options.lease.total_seconds()
        while True:
            try:
                with connected(self.address) as store:
                    rows = store.ask("take", ids=ids, fences=fences)
            except ConnectionUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_AFTER)
            else:
                return [Preclaimed(row[:_CLAIMED_COLUMNS], *row[_CLAIMED_COLUMNS:]) for row in rows]


class _Counts:
    """An observer that adds up."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None:
        pass

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        self.counts[outcome] += 1

    def lost(self, job: Job) -> None:
        self.counts["lost"] += 1

    def settled(self, job: Job, result: Settled | None) -> None:
        pass


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


_IN_FLIGHT = 2  # batches: the next one runs while the last messages of this one end


def run_handlers(
    worker: Worker,
    spark: "SparkSession",
    *,
    stream: str | None = None,
    until_empty: bool = False,
    stop: threading.Event | None = None,
    messages_per_batch: int = 1000,
    messages_per_task: int = 50,
    poll: Duration = 1,
) -> Counter[str]:
    """Runs the worker's handlers on Spark's executors, and returns the number of messages by
    outcome.

    It runs until ``stop`` is set or, with ``until_empty``, until nothing can be claimed and nothing
    is running. A stream has one owner: another run with the same stream takes it over. By default
    it is named like the worker's first queue. The worker's concurrency applies to each task,
    limits of channels apply to all together.

    >>> run_handlers(worker, spark, until_empty=True)
    Counter({'completed': 998, 'retried': 2})
    """
    loop = _DriverLoop(
        spark,
        task_for(worker),
        stream or worker.queues[0],
        check_number("messages_per_batch", messages_per_batch, 1, BATCH),
        check_number("messages_per_task", messages_per_task, 1, BATCH),
        stop or threading.Event(),
        check_duration("poll", poll).total_seconds(),
    )
    with plainly():
        return loop.work(until_empty)


class _DriverLoop:
    def __init__(
        self,
        spark: "SparkSession",
        task: HandlerTask,
        stream: str,
        batch: int,
        part: int,
        stop: threading.Event,
        poll: float,
    ) -> None:
        self._spark = spark
        self._task = task
        self._stream = stream
        self._batch = batch
        self._part = part
        self._stop = stop
        self._poll = poll
        self._seq = 0
        self._running: set[Future[Counter[str]]] = set()
        self._counts: Counter[str] = Counter()

    def work(self, until_empty: bool) -> Counter[str]:
        options = self._task.definition.options
        self._owner = StreamOwner(self._task.address, self._stream, options.queues, options.lease)
        pool = ThreadPoolExecutor(_IN_FLIGHT, "laneway-batch")
        try:
            self._owner.begin()
            self._claim_until_stopped(pool, until_empty)
            self._owner.begin()  # messages that no task has taken over go back at once
            self._wait_for_rest(options.grace.total_seconds())
        except BaseException:
            with suppress(LanewayError):
                self._owner.begin()
            raise
        finally:
            self._owner.stop()
            pool.shutdown(wait=False, cancel_futures=True)
        return self._counts

    def _claim_until_stopped(self, pool: ThreadPoolExecutor, until_empty: bool) -> None:
        backoff = Backoff(0.1, 5.0)
        while not self._stop.is_set():
            if len(self._running) >= _IN_FLIGHT:
                self._collect(None)
                continue
            idle = not self._running
            try:
                got, status = self._owner.claim(self._seq + 1, self._batch)
            except ConnectionUnavailable as error:
                _log.warning("the claim failed, trying again: %s", error)
                self._stop.wait(backoff.next())
                continue
            backoff.reset()
            if got:
                self._seq += 1
                self._running.add(pool.submit(self._run, self._seq))
            elif until_empty and idle and status != "busy":
                return
            else:
                self._collect(self._poll)

    def _collect(self, seconds: float | None) -> None:
        """Waits for a batch to end, at most so many seconds; raises what the batch raised."""
        if not self._running:
            self._stop.wait(seconds)
            return
        step = seconds if seconds is not None else self._poll
        done, self._running = wait(self._running, step, FIRST_COMPLETED)
        for batch in done:
            self._counts += batch.result()

    def _wait_for_rest(self, grace: float) -> None:
        """Lets running batches end within the grace period."""
        done, late = wait(self._running, grace)
        for batch in done:
            self._counts += batch.result()
        if late:
            _log.warning(
                "%d batches are still running; if they die, their messages are delivered again",
                len(late),
            )

    def _run(self, seq: int) -> Counter[str]:
        """Runs the rest again if the job fails after some tasks began, or because its tasks could
        not reach the database."""
        counts: Counter[str] = Counter()
        backoff = Backoff(0.1, 5.0)
        items = self._items(seq)
        while items:
            parts = [items[n : n + self._part] for n in range(0, len(items), self._part)]
            try:
                counts += run_parts(self._spark, self._task, parts)
                break
            except Exception as error:
                left = self._items(seq)
                stuck = len(left) == len(items)
                if stuck and (not is_outage(error) or self._stop.wait(backoff.next())):
                    raise
                _log.warning(
                    "batch %d: a task failed, %d messages left: %s", seq, len(left), reason(error)
                )
                items = left
        _log.info("batch %d: %s", seq, ", ".join(f"{n} {what}" for what, n in counts.items()))
        return counts

    def _items(self, seq: int) -> list[Item]:
        """Waits while the database is unavailable, as the claim does."""
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                return self._owner.items(seq)
            except ConnectionUnavailable as error:
                if self._stop.is_set():
                    raise
                _log.warning("batch %d could not be read, trying again: %s", seq, error)
                self._stop.wait(backoff.next())
