"""Two sessions at one shared limit: one stops before each of its statements that read or write
limits, the other runs, the first one goes on. What waits for the limit is not passed by what names
it among others.
"""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.engines.mysql import MysqlEngine
from laneway.model import HeldLease
from laneway.plan import Plan
from tests.model.mysql import connect
from tests.mysql.test_pairs import MINUTE, MOMENT, Session

WRITTEN = (
    *("message", "wake", "lease", "channel", "history"),
    *("shared_limit", "limit_lease", "limit_lane", "limit_wait", "limit_queue", "limit_clock"),
)


class Scene:
    """A limit lets one run. The queue ``first`` has a message that waits for it, and the queue
    ``other`` one that was just published and names another limit too."""

    def __init__(self, url: str) -> None:
        self.now = datetime.now(UTC) - timedelta(days=1)
        self.observer = connect(url, autocommit=True)
        self.queue = Queue(url, clock=lambda: self.now, upkeep_every=None)
        self.queue.install()
        self.sessions = Session(connect(url)), Session(connect(url))

    def close(self) -> None:
        self.queue.close()
        for connection in (self.observer, *(session.connection for session in self.sessions)):
            connection.close()

    def engine(self) -> MysqlEngine:
        return MysqlEngine(clock=lambda: self.now)

    def claim(self, queue: str) -> Plan[Any]:
        return self.engine().claims.claim((queue,), 10, MINUTE, "w")

    def set_up(self, freed: bool) -> None:
        """``freed``: what ran has ended."""
        with self.observer.cursor() as cursor:
            for table in WRITTEN:
                cursor.execute(f"delete from `laneway_{table}`")  # noqa: S608
        self.queue.limits["api"].set(concurrency=1)
        self.queue.publish("x", queue="first", limits=["api"])
        (running,) = self.queue.claim(1, queues=["first"])
        self.queue.publish("x", queue="first", limits=["api"])
        assert not self.queue.claim(1, queues=["first"])
        self.running = HeldLease(running.id, running.fence)
        if freed:
            running.complete()
        self.late = self.queue.publish("x", queue="other", limits=["a", "api"]).id

    def leased(self) -> set[int]:
        with self.observer.cursor() as cursor:
            cursor.execute("select message_id from laneway_lease")
            return {int(row[0]) for row in cursor.fetchall()}


Verb = Callable[[Scene], Plan[Any]]
# What meets the claim of the late one, and what has happened before.
MEETS: dict[str, tuple[Verb, bool]] = {
    "starts it": (lambda s: s.claim("first"), True),
    "ends what ran": (lambda s: s.engine().leases.complete([s.running]), False),
}


@pytest.fixture(scope="module")
def scene(mariadb: Any) -> Iterator[Scene]:
    with EmbeddedMariaDB(settings={"innodb_flush_log_at_trx_commit": 0}) as server:
        scene = Scene(server.create_database("limit_pairs"))
        yield scene
        scene.close()


_SLOW = pytest.mark.repeats("the pair with a race of its own is in make test")
PAIRS = [
    pytest.param(name, late, marks=() if late and name == "starts it" else _SLOW)
    for name in MEETS
    for late in (True, False)
]


@pytest.mark.parametrize(("name", "late_stops"), PAIRS)
def test_nobody_is_passed(scene: Scene, name: str, late_stops: bool) -> None:
    cut = 1
    while _play(scene, *MEETS[name], cut, late_stops):
        cut += 1
    assert cut > 3


def _play(scene: Scene, verb: Verb, freed: bool, cut: int, late_stops: bool) -> bool:
    """Whether whoever stops had more to do after so many statements."""
    scene.set_up(freed)
    one, two = scene.sessions
    plans = [scene.claim("other"), verb(scene)]
    one.begin(plans.pop(0 if late_stops else 1))
    going = all(one.step() for _ in range(cut))
    if going and "limit_" not in one.next_sql:
        one.connection.rollback()
        return True
    failed: list[BaseException] = []

    def run() -> None:
        try:
            two.begin(plans[0])
            two.finish()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(MOMENT)
    if going:
        one.finish()
    else:
        one.connection.commit()
    thread.join(20)
    assert not thread.is_alive() and not failed, (cut, failed)
    assert scene.late not in scene.leased(), f"it was passed: stopped after {cut}"
    return going


def test_upkeep_forgets_lanes_and_clocks_after_a_minute(mariadb: EmbeddedMariaDB) -> None:
    """What started without having waited counts if its channel comes to wait; then all goes."""
    url = mariadb.create_database("limit cleanup")
    now = [datetime.now(UTC)]
    with (
        Queue(url, clock=lambda: now[0], upkeep_every=None) as queue,
        connect(url, autocommit=True) as eyes,
        eyes.cursor() as cursor,
    ):
        queue.install()
        queue.limits["api"].set(concurrency=5)
        queue.publish(1, limits=["api"])
        queue.complete(queue.claim())
        left = []
        for seconds in (1, 61, 1):
            now[0] += timedelta(seconds=seconds)
            queue.upkeep()
            counted = []
            for table in ("limit_lane", "limit_clock"):
                cursor.execute(f"select count(*) from laneway_{table}")  # noqa: S608
                counted += [int(row[0]) for row in cursor.fetchall()]
            left.append(counted)
    assert left == [[1, 1], [0, 1], [0, 0]]
