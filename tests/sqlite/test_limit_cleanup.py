"""What upkeep forgets of shared limits, also while others wait behind the same ones."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from laneway import Queue


def _run(path: Path, sql: str, rows: Sequence[Sequence[object]] = ((),)) -> list[tuple[object]]:
    with closing(sqlite3.connect(path)) as eyes, eyes:
        return [row for values in rows for row in eyes.execute(sql, values).fetchall()]


def _lanes(path: Path) -> list[tuple[object]]:
    return _run(path, "select channel_id from laneway_limit_lane order by 1")


QUEUE = "insert into laneway_limit_queue values (?, ?)"
LANE = "insert into laneway_limit_lane values (?, ?, ?, ?, ?, 0)"
CLOCKS = "select limits from laneway_limit_clock"
WAIT = "insert into laneway_limit_wait values (?, 'api', 1, '', 0, 1, ?, 0)"


def test_idle_lanes_go_and_their_queue_with_the_last(url: str, path: Path) -> None:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        _run(path, QUEUE, [("q", "api")])
        _run(path, LANE, [("api", n, "q", 1.0, 0) for n in range(1500)])  # more than a part
        queue.upkeep()
        queue.upkeep()
        assert _lanes(path) == [] == _run(path, "select * from laneway_limit_queue")


def test_a_lane_that_had_more_than_others_is_remembered(url: str, path: Path) -> None:
    """It would be served twice if it came back as a new one."""
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        _run(path, QUEUE, [("idle", "api"), ("busy", "api")])
        lanes = [(1, "busy", 5.0, 1), (2, "idle", 4.0, 0), (3, "idle", 9.0, 0)]
        _run(path, LANE, [("api", *lane) for lane in lanes])
        queue.upkeep()
        assert _lanes(path) == [(1,), (3,)]
        assert _run(path, "select queue from laneway_limit_queue") == [("busy",)]
        _run(path, "update laneway_limit_lane set waiting = 0")
        queue.upkeep()
        assert _lanes(path) == [] == _run(path, "select * from laneway_limit_queue")


def test_what_was_used_within_a_minute_is_remembered(url: str, path: Path) -> None:
    """What started without having waited counts if its channel comes to wait; then all goes."""
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        queue.limits["api"].set(concurrency=5)
        queue.publish(1, limits=["api"])
        queue.complete(queue.claim())
        queue.upkeep()
        assert len(_lanes(path)) == 1 == len(_run(path, CLOCKS))
        _run(path, "update laneway_limit_lane set used = used - 61000000")
        _run(path, "update laneway_limit_clock set at = at - 61000000")
        queue.upkeep()
        assert _lanes(path) == [] == _run(path, CLOCKS)


def test_a_queue_that_is_always_busy_forgets_idle_lanes(url: str, path: Path) -> None:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        _run(path, QUEUE, [("busy", "api")])
        _run(path, LANE, [("api", 1, "busy", 5.0, 1), ("api", 2, "busy", 4.0, 0)])
        queue.upkeep()
        assert _lanes(path) == [(1,)]


def test_a_queue_that_is_always_busy_forgets_old_messages(url: str, path: Path) -> None:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        _run(path, QUEUE, [("busy", "api")])
        _run(path, LANE, [("api", 1, "busy", 5.0, 1)])
        _run(path, WAIT, [(1, 5), (2, None)])
        queue.upkeep()
        assert _run(path, "select message_id from laneway_limit_wait") == [(2,)]
