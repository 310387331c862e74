"""Who has a message of a stream: the stream until a task takes it over, then that task alone."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from pyspark import cloudpickle

from laneway import NewMessage, Queue
from laneway.errors import ConnectionUnavailable, DatabaseFailed
from laneway.spark.claim_stream import Item, StreamOwner
from laneway.spark.handlers import HandlerTask, task_for
from laneway.spark.store import transaction
from laneway.worker.run.runtime import Preclaimed, run_preclaimed
from tests.place import Place
from tests.spark.handled import look
from tests.spark.jobs import make_worker

_LEASE = timedelta(seconds=30)


@pytest.fixture
def task(queue: Queue, place: Place) -> HandlerTask:
    queue.publish_many([NewMessage({}, kind="completes")] * 4)
    return task_for(make_worker(place.url, place.schema))


@pytest.fixture
def owner(task: HandlerTask) -> Iterator[StreamOwner]:
    owner = StreamOwner(task.address, "s", ["default"], _LEASE)
    yield owner
    owner.stop()


def claimed(owner: StreamOwner) -> list[Item]:
    owner.begin()
    assert owner.claim(1, 10)[0] == 4
    return owner.items(1)


def test_what_a_task_took_is_no_longer_the_streams(
    task: HandlerTask, owner: StreamOwner, place: Place
) -> None:
    """Not completed, not given back, not extended with its batch."""
    items = claimed(owner)
    taken = task._take(items[:2])
    assert [(handed.row[0], handed.row[1]) for handed in taken] == items[:2]
    assert all(0 < handed.left <= 30 for handed in taken)
    assert task._take(items[:2]) == []
    mine, others = [(id,) for id, _ in items[:2]], [(id,) for id, _ in items[2:]]
    until = f"select until from lease where message_id <= {mine[-1][0]}"  # noqa: S608
    before = look(place, until)
    owner._beat_once()
    assert look(place, until) == before
    owner.complete(1, owner.query)
    assert look(place, "select message_id from history order by 1") == others
    owner.begin()
    assert look(place, "select message_id from lease order by 1") == mine


def test_two_attempts_at_the_same_moment(
    task: HandlerTask, owner: StreamOwner, place: Place
) -> None:
    """The second waits for the first, and gets what that one leaves."""
    items = claimed(owner)
    ids, fences = [id for id, _ in items[:3]], [fence for _, fence in items[:3]]
    got: list[int] = []
    second = threading.Thread(
        target=lambda: got.extend(handed.row[0] for handed in task._take(items))
    )
    with transaction(task.address) as store:
        first = store.ask("take", ids=ids, fences=fences)
        second.start()
        wait_for_lock(place)
    second.join()
    assert sorted(row[0] for row in first) == ids
    assert got == [items[3][0]]


@pytest.mark.parametrize("verb", ["begin", "complete"])
def test_a_task_that_begins_while_the_stream_ends_a_batch(
    task: HandlerTask, owner: StreamOwner, place: Place, queue: Queue, verb: str
) -> None:
    """Whoever is first has the messages: here the task, whose transaction is open."""
    items = claimed(owner)
    ids, fences = [id for id, _ in items], [fence for _, fence in items]

    def end() -> None:
        if verb == "begin":
            owner.begin()
        else:
            owner.complete(1, owner.query)

    ending = threading.Thread(target=end)
    with transaction(task.address) as store:
        assert len(store.ask("take", ids=ids, fences=fences)) == 4
        ending.start()
        wait_for_lock(place)
    ending.join()
    assert look(place, "select count(*) from lease") == [(4,)]
    assert look(place, "select count(*) from history") == [(0,)]
    assert not queue.claim(1)


def test_a_task_settles_what_it_took(task: HandlerTask, owner: StreamOwner, place: Place) -> None:
    """As it is sent to an executor, and run a second time: no JVM is needed to see this."""
    items = claimed(owner)
    sent: HandlerTask = cloudpickle.loads(cloudpickle.dumps(task))  # type: ignore[no-untyped-call]
    assert sent.run(items[:3]) == {"completed": 3}
    assert sent.run(items) == {"completed": 1}
    assert sent.run(items) == sent.run([]) == {}
    assert look(place, "select outcome, count(*) from history group by 1") == [("completed", 4)]
    assert look(place, "select count(*) from lease") == [(0,)]


def wait_for_lock(place: Place) -> None:
    """Until somebody waits for another's transaction."""
    waiting = sql.SQL("select count(*) from pg_locks where not granted")
    with psycopg.connect(place.url, autocommit=True) as connection:
        while connection.execute(waiting).fetchone() == (0,):
            pass


def test_the_heart_beats_on_after_the_database_refused_once(
    task: HandlerTask, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement timeout is no end; that another query took the stream is."""
    answers: list[str | None] = ["57014", None, "PNE01"]
    ended = threading.Event()

    def beat_once(owner: StreamOwner) -> None:
        state = answers.pop(0)
        if not answers:
            ended.set()
        if state is not None:
            raise DatabaseFailed("canceling statement due to statement timeout", state)

    monkeypatch.setattr(StreamOwner, "_beat_once", beat_once)
    StreamOwner(task.address, "s", ["default"], timedelta(milliseconds=30))
    assert ended.wait(30)
    assert "the heartbeat failed: canceling statement" in caplog.text


@pytest.mark.parametrize("fails", [True, False])
def test_stop_hooks_are_called_however_a_task_ends(queue: Queue, place: Place, fails: bool) -> None:
    worker, called = make_worker(place.url, place.schema), []
    worker.on_start(lambda: called.append("start"))
    worker.on_stop(lambda: called.append("stop"))

    def take() -> list[Preclaimed]:
        if fails:
            raise ConnectionUnavailable("no connection")
        return []

    with suppress(ConnectionUnavailable):
        asyncio.run(run_preclaimed(worker.definition(), 1, take, []))
    assert called == ["start", "stop"]
