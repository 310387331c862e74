"""Group commit for threads: who goes together, who is answered what."""

import random
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, main_thread
from typing import Any

import psycopg
import pytest

from laneway import LeaseLost, Queue
from laneway.client.sync.group_commit import Group
from laneway.errors import ConnectionUnavailable, DatabaseFailed
from tests.place import Place

LONG = 60.0  # seconds; nobody goes on without a flush that the test holds back


class Flush:
    """A flush that waits until it is let go, and answers each part doubled."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.gate = Event()
        self.started = Event()
        self.error: BaseException | None = None

    def __call__(self, parts: list[Any]) -> list[Any]:
        self.batches.append(parts)
        self.started.set()
        assert self.gate.wait(10)
        if self.error is not None:
            raise self.error
        if "bad" in parts:
            raise DatabaseFailed("bad", "22000")
        return [part * 2 for part in parts]


def size(part: Any) -> int:
    return part if isinstance(part, int) else 1


def call_together(flush: Flush, most: int, parts: list[Any]) -> list[Future[Any]]:
    """Calls with all parts, of which the first is under way before the others come."""
    group: Group[Any, Any] = Group(flush, size, most, patience=LONG)
    with ThreadPoolExecutor(len(parts)) as pool:
        futures = [pool.submit(group.call, parts[0])]
        assert flush.started.wait(10)
        for number, part in enumerate(parts[1:], 1):
            futures.append(pool.submit(group.call, part))
            wait_until(lambda number=number: len(group._waiting) == number)  # type: ignore[misc]
        flush.gate.set()
    group.drain()
    return futures


def wait_until(holds: Callable[[], bool]) -> None:
    tick = Event()
    for _ in range(10_000):
        if holds():
            return
        tick.wait(0.001)
    raise AssertionError("it never came to hold")


def test_later_calls_go_together() -> None:
    flush = Flush()
    futures = call_together(flush, 6, [1, 2, 3, 4, 10, 5])
    assert [future.result() for future in futures] == [2, 4, 6, 8, 20, 10]
    assert flush.batches == [[1], [2, 3], [4], [10], [5]]


def test_a_bad_part_spoils_only_its_own_call() -> None:
    flush = Flush()
    futures = call_together(flush, 100, ["first", "a", "bad", "b"])
    assert [futures[n].result() for n in (0, 1, 3)] == ["firstfirst", "aa", "bb"]
    assert isinstance(futures[2].exception(), DatabaseFailed)
    assert flush.batches == [["first"], ["a", "bad", "b"], ["a"], ["bad"], ["b"]]


def test_a_lost_connection_is_told_to_all_and_not_tried_again() -> None:
    flush = Flush()
    flush.error = ConnectionUnavailable("gone")
    futures = call_together(flush, 100, ["first", "a", "b"])
    assert {type(future.exception()) for future in futures} == {ConnectionUnavailable}
    assert flush.batches == [["first"], ["a", "b"]]


def test_an_interrupted_leader_interrupts_nobody_else() -> None:
    flush = Flush()
    flush.error = KeyboardInterrupt()
    futures = call_together(flush, 100, ["first", "a", "b"])
    kinds = [type(future.exception()) for future in futures]
    assert kinds == [KeyboardInterrupt, KeyboardInterrupt, ConnectionUnavailable]


def test_an_interrupted_follower_is_undone() -> None:
    flush = Flush()
    undone: list[Any] = []
    group: Group[Any, Any] = Group(flush, size, 100, undone.append, patience=LONG)
    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(group.call, "first")
        assert flush.started.wait(10)
        follower = pool.submit(group.call, "second")
        wait_until(lambda: len(group._waiting) == 1)
        entry = group._waiting[0]

        def interrupted(timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

        with group._lock:
            entry.condition.wait = interrupted  # type: ignore[method-assign]
            entry.condition.notify()
        with pytest.raises(KeyboardInterrupt):
            follower.result(10)
        flush.gate.set()
        assert leader.result(10) == "firstfirst"
    assert flush.batches == [["first"]] and undone == []


def test_nobody_waits_for_a_flush_that_takes_long() -> None:
    slow, quick = Event(), Event()

    def flush(parts: list[str]) -> list[str]:
        if "slow" in parts:
            slow.set()
            assert quick.wait(10)
        return parts

    group: Group[str, str] = Group(flush, size, 100, patience=0.01)
    with ThreadPoolExecutor(4) as pool:
        late = pool.submit(group.call, "slow")
        assert slow.wait(10)
        early = [pool.submit(group.call, "quick") for _ in range(3)]
        assert [future.result(10) for future in early] == ["quick"] * 3
        assert group.call("quick") == "quick"
        assert not late.done()
        quick.set()
        group.drain()
        assert late.result(10) == "slow"


def test_a_key_that_is_waited_for_holds_up_no_other(place: Place) -> None:
    with (
        Queue(place.url, schema=place.schema) as queue,
        psycopg.connect(place.url) as open_one,
        ThreadPoolExecutor(3) as pool,
    ):
        queue.install()
        queue.publish("first", key="k", connection=open_one)
        second = pool.submit(queue.publish, "second", key="k")
        wait_until(lambda: _waits_for_a_lock(place))
        for key in (None, "other"):
            assert pool.submit(queue.publish, "third", key=key).result(10).status == "published"
        assert not second.done()
        open_one.commit()
        assert second.result(10).status == "existing"


def test_a_lease_that_is_waited_for_holds_up_no_other(place: Place) -> None:
    with (
        Queue(place.url, schema=place.schema) as queue,
        psycopg.connect(place.url) as open_one,
        ThreadPoolExecutor(3) as pool,
    ):
        queue.install()
        queue.publish_many([1, 2])
        first, second = queue.claim(2)
        first.complete(connection=open_one)
        waits = pool.submit(first.extend)
        wait_until(lambda: _waits_for_a_lock(place))
        pool.submit(second.extend).result(10)
        open_one.commit()
        assert isinstance(waits.exception(10), LeaseLost)


def _waits_for_a_lock(place: Place) -> bool:
    with psycopg.connect(place.url) as connection:
        waiting = connection.execute(
            "select from pg_stat_activity where wait_event_type = 'Lock' "
            "and datname = current_database()"
        )
        return waiting.fetchone() is not None


def test_an_answer_that_meets_an_interruption_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    undone: list[str] = []
    group: Group[str, str] = Group(lambda parts: parts, size, 100, undone.append)
    land, interruptions = group._land, iter([KeyboardInterrupt()])

    def interrupted(leader: Any) -> Any:
        if interruption := next(interruptions, None):
            raise interruption
        return land(leader)

    monkeypatch.setattr(group, "_land", interrupted)
    with pytest.raises(KeyboardInterrupt):
        group.call("mine")
    assert undone == ["mine"]
    assert group.call("next") == "next"


def test_interruptions_leave_no_one_waiting() -> None:
    """A signal's exception comes anywhere in the main thread: Ctrl-C, a time limit."""
    group: Group[int, int] = Group(lambda parts: parts, size, 100, patience=0.001)
    armed = False

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    def disturb() -> None:
        while not calm.wait(random.uniform(0, 0.0005)):
            signal.pthread_kill(main_thread().ident or 0, signal.SIGUSR1)

    calm, interrupted = Event(), 0
    former = signal.signal(signal.SIGUSR1, interrupt)
    with ThreadPoolExecutor(2) as pool:
        disturbing = pool.submit(disturb)
        try:
            for _ in range(3000):
                try:
                    armed = True
                    for number in range(20):
                        group.call(number)
                    armed = False
                except KeyboardInterrupt:
                    armed, interrupted = False, interrupted + 1
        finally:
            armed = False
            calm.set()
            disturbing.result()
            signal.signal(signal.SIGUSR1, former)
        assert pool.submit(group.call, 7).result(10) == 7
        pool.submit(group.drain).result(10)
    assert interrupted > 50


def test_a_call_from_within_a_flush_goes_by_itself() -> None:
    """A signal's handler, or a log handler, that publishes in the thread that flushes."""

    def flush(parts: list[str]) -> list[str]:
        if parts == ["outer"]:
            assert group.call("inner") == "inner"
        return parts

    group: Group[str, str] = Group(flush, size, 100, patience=0.001)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(group.call, "outer").result(10) == "outer"


def test_threads_share_round_trips(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue, ThreadPoolExecutor(16) as pool:
        queue.install()
        published = list(pool.map(queue.publish, range(200)))
        assert len({p.id for p in published}) == 200
        claims = list(pool.map(lambda _: queue.claim(10), range(20)))
        messages = [message for claim in claims for message in claim]
        while claim := queue.claim(100):
            messages += claim
        assert len({m.id for m in messages}) == 200
        list(pool.map(lambda message: message.complete(), messages))
        assert queue.stats() == []
