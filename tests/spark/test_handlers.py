"""Handlers on executors: each message its own outcome, once, whatever tasks do."""

import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import DataFrame, SparkSession

from laneway import Queue
from laneway.dev.chaos.proxy import Proxy
from laneway.errors import InvalidOption
from laneway.spark import handle, run_handlers
from laneway.spark import handlers as foreman
from laneway.spark.claim_stream import StreamOwner
from laneway.spark.handlers import run_parts, task_for
from tests.place import Place
from tests.spark.conftest import LONG
from tests.spark.handled import at_once, look, make_ledger, note, ran
from tests.spark.jobs import make_worker
from tests.spark.streams import run

NOBODY = 1  # a port
KINDS = [
    *("completes", "async", "defers", "fails", "retries", "gives_up", "rejects"),
    *("first", "manual", "process", "transaction", "undecodable"),
]


@pytest.fixture(autouse=True)
def ledger(place: Place) -> None:
    make_ledger(place)


def ends(place: Place) -> Counter[tuple[Any, ...]]:
    rows = look(place, "select kind || ': ' || outcome, reason, terminal or dead from history")
    return Counter(rows)


def test_each_outcome(spark: SparkSession, queue: Queue, place: Place) -> None:
    """The same handlers, with the same outcomes, as in a worker of one's own."""
    queue.publish_many([note(place, kind) for kind in KINDS])
    worker = make_worker(place.url, place.schema)
    # Retries wait ten milliseconds: one more look may be needed until all has come to its end.
    counts: Counter[str] = Counter()
    while look(place, "select count(*) from message") != [(0,)]:
        counts += run_handlers(worker, spark, until_empty=True, messages_per_task=5)
    assert counts == {"completed": 5, "deferred": 1, "retried": 2, "failed": 4, "left": 3}
    assert ends(place) == {
        ("completes: completed", None, True): 1,
        ("async: completed", None, True): 1,
        ("defers: deferred", None, False): 1,
        ("defers: completed", None, True): 1,
        ("fails: failed", "no such customer", True): 1,
        ("retries: retried", None, False): 2,
        ("retries: completed", None, True): 1,
        ("gives_up: failed", "gave_up", True): 1,
        ("rejects: failed", "error", True): 1,
        ("first: completed", None, True): 1,
        ("manual: completed", None, True): 1,
        ("process: completed", None, True): 1,
        ("transaction: completed", None, True): 1,
        ("undecodable: failed", "payload", True): 1,
    }
    assert look(place, "select count(*) from public.ran where schema is null") == [(1,)]
    assert look(place, "select count(*) from lease") == [(0,)]
    assert look(place, "select count(*) from stream_item") == [(0,)]


def test_of_two_attempts_of_a_task_one_runs_each_message(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    """What a retry or speculation does: the same tasks, complete, at once and afterwards."""
    queue.publish_many([note(place, "recorded", f"c{n}", seconds=0.05) for n in range(6)])
    worker = make_worker(place.url, place.schema)
    owner = StreamOwner(task_for(worker).address, "s", ["default"], timedelta(seconds=30))
    owner.claim(1, 100)
    items = owner.items(1)
    parts = [items[:3], items[3:], items[:3], items[3:]]
    task = task_for(worker)
    assert run_parts(spark, task, parts) == {"completed": 6}
    assert run_parts(spark, task, parts) == {}
    owner.stop()
    assert ran(place, "count(*), count(distinct message_id), max(attempt)") == [(6, 6, 1)]
    assert look(place, "select count(*) from history where outcome <> 'completed'") == [(0,)]


def test_limits_hold_across_tasks(spark: SparkSession, queue: Queue, place: Place) -> None:
    queue.channel("narrow").limit(concurrency=2)
    queue.publish_many([note(place, "recorded", "narrow", seconds=0.1)] * 5)
    queue.publish_many([note(place, "recorded", "wide", seconds=0.1)] * 3)
    worker = make_worker(place.url, place.schema, concurrency=4)
    counts = run_handlers(worker, spark, until_empty=True, messages_per_task=1)
    assert counts == {"completed": 8}
    assert at_once(place, "narrow") <= 2


def test_a_message_that_kills_its_process_costs_only_its_own_try(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    """Spark gives up the job (here: at the first death), the rest of the batch runs in another; the
    lost ones come back when their leases run out, counted."""
    queue.publish(note(place, "crashes").payload, kind="crashes")
    queue.publish_many([note(place, "recorded", f"c{n}") for n in range(5)])
    worker = make_worker(place.url, place.schema)
    run_handlers(worker, spark, until_empty=True, messages_per_task=1)
    held = look(place, "select count(*) from lease")[0][0]
    assert held >= 1
    assert look(place, "select count(*) from stream_item") == [(0,)]
    look(place, "update lease set until = now() - interval '1 second' returning 1")
    queue.upkeep()
    look(place, "update wake set at = now(), due = now() returning 1")
    look(place, "update message set due = now() returning 1")
    run_handlers(worker, spark, until_empty=True)
    assert look(
        place, "select count(*) from history where kind = 'crashes' and outcome = 'expired'"
    ) == [(1,)]
    assert look(place, "select count(*) from history where outcome = 'completed'") == [(6,)]
    assert ran(place, "max(attempt)", "channel = 'default'") == [(2,)]


@pytest.mark.repeats("handlers of a batch in the other tests here")
def test_handlers_in_a_stream(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    """In foreachBatch, also if the query dies after some handlers and before Spark's commit: the
    batch comes again, with what was not handled. What the frame left out is completed with it."""
    queue.publish_many([note(place, "recorded", f"c{n}") for n in range(6)])
    queue.publish_many([note(place, "fails")] * 2 + [note(place, "nobody", "aside")] * 2)
    worker = make_worker(place.url, place.schema)
    counts: Counter[str] = Counter()

    def sink(frame: DataFrame, batch: int) -> None:
        chosen = frame.where("channel <> 'aside'")
        if not counts:
            counts.update(handle(chosen.where("channel > 'c2'"), worker))
            raise RuntimeError("the driver dies on purpose")
        counts.update(handle(chosen, worker))

    more = {"what": "claims", "stream": "s", "rowsPerPartition": 4}
    with pytest.raises(Exception, match="dies on purpose"):
        run(spark, place, sink, tmp_path, **more)
    run(spark, place, sink, tmp_path, **more)
    assert counts == {"completed": 6, "failed": 2}
    assert ran(place, "count(*), count(distinct message_id)") == [(6, 6)]
    assert ends(place) == {
        ("recorded: completed", None, True): 6,
        ("fails: failed", "no such customer", True): 2,
        ("nobody: completed", None, True): 2,
    }


def test_a_stop_gives_back_what_has_not_begun(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    queue.publish_many([note(place, "recorded", f"c{n}", seconds=0.3) for n in range(16)])
    worker = make_worker(place.url, place.schema)
    stop = threading.Event()
    stopping = threading.Thread(target=stop_once_running, args=(place, stop))
    stopping.start()
    counts = run_handlers(worker, spark, stop=stop, messages_per_task=1)
    stopping.join()
    (begun,) = ran(place, "count(*)")[0]
    assert counts == {"completed": begun} and 0 < begun < 16
    assert look(place, "select count(*), sum(attempt) from message") == [(16 - begun, 0)]
    assert look(place, "select count(*) from lease") == [(0,)]


def stop_once_running(place: Place, stop: threading.Event) -> None:
    while ran(place, "count(*)") == [(0,)]:
        pass
    stop.set()


def test_what_cannot_be_sent_is_refused_before_anything_is_claimed(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    worker = make_worker(place.url, place.schema)
    lock = threading.Lock()

    @worker.handler("local")
    def local(payload: int) -> None:
        lock.acquire()

    with pytest.raises(InvalidOption, match=r"cannot be sent to executors .*lock.*every node"):
        run_handlers(worker, spark, until_empty=True)
    with pytest.raises(InvalidOption, match="a claim stream needs PostgreSQL, not sqlite"):
        run_handlers(make_worker("sqlite:///x.db", "main"), spark)


@LONG  # tasks wait half a minute for it
def test_a_database_that_is_away_for_a_moment_ends_no_run(
    spark: SparkSession,
    queue: Queue,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Tasks reach nobody, and then the driver's own look breaks off."""
    port = urlsplit(place.url).port or 0
    proxy = Proxy(port)
    way = proxy.open("all")
    jobs: list[Any] = []

    def run_cut_off(*args: Any) -> Counter[str]:
        jobs.append(args)
        if len(jobs) > 1:
            return run_parts(*args)
        proxy.redirect(NOBODY)
        try:
            return run_parts(*args)
        finally:
            proxy.cut("all", "swallowed")
            proxy.redirect(port)

    monkeypatch.setattr(foreman, "run_parts", run_cut_off)
    queue.publish_many([note(place, "recorded", f"c{n}") for n in range(4)])
    worker = make_worker(place.url.replace(f":{port}", f":{way}"), place.schema)
    try:
        assert run_handlers(worker, spark, until_empty=True) == {"completed": 4}
    finally:
        proxy.close()
    assert len(jobs) == 2
    assert "a task failed, 4 messages left: no connection" in caplog.text
