"""The driver's loop for handlers on the cluster: claims batches and hands them to executors."""

import logging
import threading
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.client.checks import check_number
from penstock.contract import BATCH
from penstock.errors import ConnectionUnavailable, PenstockError
from penstock.worker.backoff import Backoff
from penstock.worker.worker import Worker

from .faults import is_outage, plainly, reason
from .handling import run_parts, task_for
from .stream_owner import Item, StreamOwner
from .task_handling import Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("penstock.spark")

_IN_FLIGHT = 2  # batches: while a slow message ends, the next ones already run


def run_handlers(
    worker: Worker,
    spark: "SparkSession",
    *,
    stream: str | None = None,
    until_empty: bool = False,
    stop: threading.Event | None = None,
    messages_per_batch: int = 1000,
    messages_per_task: int = 50,
    poll: timedelta = timedelta(seconds=1),
) -> Counter[str]:
    """Runs the worker's handlers on Spark's executors, and answers how many messages got which
    outcome.

    Until ``stop`` is set or, with ``until_empty``, nothing can be claimed and nothing runs. A
    stream (by default named like the worker's first queue) has one owner: another run under its
    name takes it over. The worker's concurrency holds for each task, limits of channels for all.

    >>> run_handlers(worker, spark, until_empty=True)
    Counter({'completed': 998, 'retried': 2})
    """
    foreman = _Foreman(
        spark,
        task_for(worker),
        stream or worker.queues[0],
        check_number("messages_per_batch", messages_per_batch, 1, BATCH),
        check_number("messages_per_task", messages_per_task, 1, BATCH),
        stop or threading.Event(),
        poll.total_seconds(),
    )
    with plainly():
        return foreman.work(until_empty)


class _Foreman:
    def __init__(
        self,
        spark: "SparkSession",
        task: Task,
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
        options = self._task.kit.options
        self._owner = StreamOwner(self._task.address, self._stream, options.queues, options.lease)
        pool = ThreadPoolExecutor(_IN_FLIGHT, "penstock-batch")
        try:
            self._owner.begin()
            self._claim_until_stopped(pool, until_empty)
            self._owner.begin()  # what no task has begun goes back at once
            self._wait_for_rest(options.grace.total_seconds())
        except BaseException:
            with suppress(PenstockError):
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
                got, answer = self._owner.claim(self._seq + 1, self._batch)
            except ConnectionUnavailable as error:
                _log.warning("the claim failed and is tried again: %s", error)
                self._stop.wait(backoff.next())
                continue
            backoff.reset()
            if got:
                self._seq += 1
                self._running.add(pool.submit(self._run, self._seq))
            elif until_empty and idle and answer != "busy":
                return
            else:
                self._collect(self._poll)

    def _collect(self, seconds: float | None) -> None:
        """Waits for the next batch to end, or so long; raises what a batch raised."""
        if not self._running:
            self._stop.wait(seconds)
            return
        step = seconds if seconds is not None else self._poll
        done, self._running = wait(self._running, step, FIRST_COMPLETED)
        for batch in done:
            self._counts += batch.result()

    def _wait_for_rest(self, grace: float) -> None:
        """What has begun may end within the grace."""
        done, late = wait(self._running, grace)
        for batch in done:
            self._counts += batch.result()
        if late:
            _log.warning("%d batches still run: their messages come back if they die", len(late))

    def _run(self, seq: int) -> Counter[str]:
        """A job that fails after some tasks began, or because they reached no database, is run
        again for the rest."""
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
                    "batch %d: a task died, %d messages left: %s", seq, len(left), reason(error)
                )
                items = left
        _log.info("batch %d: %s", seq, ", ".join(f"{n} {what}" for what, n in counts.items()))
        return counts

    def _items(self, seq: int) -> list[Item]:
        """A database that is away is waited for, as by a claim."""
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                return self._owner.items(seq)
            except ConnectionUnavailable as error:
                if self._stop.is_set():
                    raise
                _log.warning("batch %d is looked at again: %s", seq, error)
                self._stop.wait(backoff.next())
