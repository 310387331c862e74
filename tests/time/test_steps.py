"""A firing, stopped between any two of its statements, while somebody else fires, edits, pauses or
removes the same schedule; and its backend killed there. No tick fires twice, none is lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import RawCursor

from laneway import Queue
from laneway.conformance.world import HandClock
from laneway.engines.postgresql import PostgresqlEngine
from laneway.errors import ScheduleMissing
from laneway.schedule import TICK_HEADER
from tests.place import Place, fresh_schema

HOUR = timedelta(hours=1)
_numbers = count(1)
STEPS = 4  # due, publish, move, next
_KILL = "select pg_terminate_backend(%s, 20000)"  # and waits until it is gone


class Slow:
    """One firing on a session of its own, statement by statement."""

    def __init__(self, place: Place, queue: Queue, clock: HandClock) -> None:
        self.connection: psycopg.Connection[Any] = psycopg.connect(place.url)
        self.pid = self.connection.info.backend_pid
        self._plan = PostgresqlEngine(place.schema, clock).schedules.fire_due((queue.name,), 10)
        self._statement = next(self._plan)

    def step(self) -> None:
        with RawCursor(self.connection) as cursor:
            cursor.execute(self._statement.sql.encode(), self._statement.params)
            rows = cursor.fetchall()
        try:
            self._statement = self._plan.send(rows)
        except StopIteration:
            return

    def end(self, place: Place, how: str) -> None:
        if how == "commit":
            self.connection.commit()
        elif how == "rollback":
            self.connection.rollback()
        else:
            with psycopg.connect(place.url, autocommit=True) as other:
                other.execute(_KILL, [self.pid])
        self.connection.close()


@pytest.fixture
def clock() -> HandClock:
    return HandClock(datetime(2027, 1, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def home(database: str) -> Place:
    place = Place(database, fresh_schema())
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
    return place


@pytest.fixture
def queue(home: Place, clock: HandClock) -> Iterator[Queue]:
    name = f"q{next(_numbers)}"
    with Queue(home.url, name=name, schema=home.schema, clock=clock, upkeep_every=None) as opened:
        opened.schedule("s", "old", every=HOUR, catch_up="all")
        clock.advance(3 * 3600)
        yield opened


def fire(queue: Queue) -> None:
    queue.fire_schedules(queues=[queue.name])


def edit(queue: Queue) -> None:
    queue.schedule("s", "new", every=HOUR, catch_up="all", channel="other")


def pause(queue: Queue) -> None:
    queue.schedules.pause("s")
    queue.schedules.resume("s")


def remove(queue: Queue) -> None:
    queue.schedules.remove("s")


OTHERS: list[Callable[[Queue], None]] = [fire, edit, pause, remove]


def ticks_of(queue: Queue) -> list[datetime]:
    return [datetime.fromisoformat(m.headers[TICK_HEADER]) for m in queue.claim(100)]


@pytest.mark.parametrize("end", ["commit", "rollback", "kill"])
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.__name__)
@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_a_firing_meets_another(
    queue: Queue,
    home: Place,
    clock: HandClock,
    steps: int,
    other: Callable[[Queue], None],
    end: str,
) -> None:
    slow = Slow(home, queue, clock)
    for _ in range(steps):
        slow.step()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(other, queue)
        if steps > 0 and other is not fire:  # only an edit of a row that is held waits
            with suppress(TimeoutError):
                running.result(timeout=0.3)
        else:
            running.result(timeout=20)
        for _ in range(STEPS - steps if end == "commit" else 0):
            slow.step()
        slow.end(home, end)
        running.result(timeout=20)
    clock.advance(60)  # whoever was put aside or held comes again
    for _ in range(5):
        queue.fire_schedules(queues=[queue.name])
    found = ticks_of(queue)
    assert len(found) == len(set(found)), "a tick fired twice"
    begin = datetime(2027, 1, 1, tzinfo=UTC)
    everything = [begin + n * HOUR for n in (1, 2, 3)]
    if other in (fire, edit) or (end == "commit" and steps > 0):
        assert sorted(found) == everything, "a tick was lost"
    if other is remove:
        with pytest.raises(ScheduleMissing):
            queue.schedules.get("s")
    else:
        now = queue.schedules.get("s")
        assert now.next_at == begin + 4 * HOUR and now.fired == len(found)


@pytest.mark.parametrize("steps", range(1, STEPS + 1))
def test_a_killed_firing_leaves_nothing_behind(
    queue: Queue, home: Place, clock: HandClock, steps: int
) -> None:
    slow = Slow(home, queue, clock)
    for _ in range(steps):
        slow.step()
    assert queue.fire_schedules(queues=[queue.name]).fired == 0, "it is held"
    slow.end(home, "kill")
    assert not queue.claim(10), "nothing of an open firing can be seen"
    assert queue.fire_schedules(queues=[queue.name]).fired == 3
    assert len(ticks_of(queue)) == 3


def test_one_bad_schedule_holds_up_no_other(queue: Queue, home: Place, clock: HandClock) -> None:
    queue.schedule("cron", 1, cron="0 * * * *", zone="Europe/Zurich")
    clock.advance(3600)
    with psycopg.connect(home.url) as connection:
        query = psycopg.sql.SQL("update {}.schedule set zone = 'Gone/Away' where cron is not null")
        connection.execute(query.format(psycopg.sql.Identifier(home.schema)))
    report = queue.fire_schedules(queues=[queue.name])
    assert (report.fired, report.put_aside) == (4, 1)
    bad = queue.schedules.get("cron")
    assert bad.error and "Gone/Away" in bad.error and bad.fired == 0
    assert queue.fire_schedules(queues=[queue.name]).put_aside == 0, "not again at once"
    clock.advance(60)
    assert queue.fire_schedules(queues=[queue.name]).put_aside == 1
    queue.schedule("cron", 1, cron="0 * * * *", zone="Europe/Paris")
    clock.advance(3600)
    queue.fire_schedules(queues=[queue.name])
    assert queue.schedules.get("cron").error is None
