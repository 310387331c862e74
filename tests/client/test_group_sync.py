"""Group commit for threads: who goes together, who is answered what."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from penstock import ConnectionUnavailable, DatabaseFailed, Queue
from penstock.client.group_sync import Group
from tests.place import Place


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
    group: Group[Any, Any] = Group(flush, size, most)
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
    group: Group[Any, Any] = Group(flush, size, 100, undone.append)
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
        assert queue.numbers() == []
