"""Figures by minute: whatever happens, each end and each publish is counted once."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pymysql
import pytest

from laneway import NewMessage, Queue
from laneway.engines.mysql.operate.minutes import COUNTS
from laneway.operations import Minute
from tests.model.mysql import connect

ROUNDS = 100
KINDS = ("mail", "bill", "scan")
CHANNELS = [f"tenant-{n}" for n in range(40)]


class HandClock:
    """Goes on by hand, from the real time."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(second=0, microsecond=0)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def timed(url: str, clock: HandClock) -> Iterator[Queue]:
    options: Any = {"upkeep_every": None, "clock": clock, "lease": 30}
    with Queue(url, **options) as queue:
        queue.install()
        yield queue


def query(url: str, text: str) -> list[tuple[Any, ...]]:
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall())


def upkeep_that_is_killed(queue: Queue, url: str, statements: int) -> bool:
    """Runs upkeep, and kills its connection before that statement; False if it had fewer."""
    with closing(connect(url)) as other, closing(connect(url)) as mine:
        with mine.cursor() as cursor:
            cursor.execute("set session transaction isolation level read committed")
            cursor.execute("set session sql_mode = 'STRICT_TRANS_TABLES'")
            plan = queue.database.engine.maintenance.upkeep()
            statement = next(plan)
            for _ in range(statements):
                try:
                    if not statement.guest:
                        cursor.execute(statement.sql, statement.params or None)
                    has_rows = cursor.description is not None and not statement.guest
                    rows: Any = cursor.fetchall() if has_rows else [(cursor.lastrowid,)]
                    statement = plan.send(() if statement.guest else rows)
                except StopIteration:
                    mine.commit()
                    return False
        with other.cursor() as cursor:
            cursor.execute("kill %s", [mine.thread_id()])  # type: ignore[no-untyped-call]
        with pytest.raises(pymysql.MySQLError):
            mine.commit()
        return True


def catch_up(queue: Queue, clock: HandClock) -> None:
    """Until everything is counted, also late transactions."""
    for _ in range(20):
        queue.upkeep()
        clock.advance(1200)


def added_up(minutes: list[Minute]) -> Counter[tuple[str | None, str]]:
    sums: Counter[tuple[str | None, str]] = Counter()
    for minute in minutes:
        for name in COUNTS:
            sums[minute.kind, name] += getattr(minute, name)
        sums[minute.kind, "waits"] += sum(minute.waits)
        sums[minute.kind, "runs"] += sum(minute.runs)
    return +sums


def from_history(url: str) -> Counter[tuple[str | None, str]]:
    sums: Counter[tuple[str | None, str]] = Counter()
    rows = query(url, "select kind, outcome, dead, claimed_at is not null from laneway_history")
    for kind, outcome, dead, tried in rows:
        if outcome == b"stale":
            continue
        sums[kind.decode(), outcome.decode()] += 1
        sums[kind.decode(), "dead"] += dead
        for name in ("started", "waits", "runs"):
            sums[kind.decode(), name] += tried
    return +sums


class Day:
    """A random day of a queue; every publish that is committed is noted."""

    def __init__(self, queue: Queue, url: str, clock: HandClock, seed: int) -> None:
        self.queue, self.url, self.clock = queue, url, clock
        self.random = random.Random(seed)
        self.published: Counter[str] = Counter()
        self.open: list[tuple[Any, Counter[str]]] = []
        self.kills = 0
        self.first = 0

    def drafts(self, n: int) -> list[NewMessage]:
        pick = self.random.choice
        lapsing = timedelta(seconds=20) if self.random.random() < 0.2 else None
        return [
            NewMessage(n, pick(CHANNELS), kind=pick(KINDS), expires_in=lapsing, max_attempts=2)
            for n in range(n)
        ]

    def publish(self) -> None:
        drafts = self.drafts(self.random.randrange(1, 300))
        kinds = Counter(draft.kind for draft in drafts)
        way = self.random.random()
        if way < 0.6:
            ids = [one.id or 0 for one in self.queue.publish_many(drafts)]
            self.first = self.first or ids[0]
            self.published += kinds
            return
        connection = connect(self.url)
        self.queue.publish_many(drafts, connection=connection)
        if way < 0.75:
            connection.rollback()
            connection.close()
        else:
            self.open.append((connection, kinds))

    def end_a_transaction(self) -> None:
        if self.open:
            connection, kinds = self.open.pop(self.random.randrange(len(self.open)))
            if self.random.random() < 0.7:
                connection.commit()
                self.published += kinds
            connection.close()

    def work(self) -> None:
        done = []
        for message in self.queue.claim(self.random.randrange(1, 100)):
            way = self.random.random()
            self.clock.advance(self.random.choice((0, 0, 0, 1)))
            if way < 0.5:
                done.append(message)
            elif way < 0.6:
                message.fail("no")
            elif way < 0.7:
                message.defer(timedelta(seconds=5), error=ValueError("later"))
            elif way < 0.75:
                message.defer(timedelta(seconds=5))
            elif way < 0.85:
                message.give_back()
        self.queue.complete(done)

    def operate(self) -> None:
        way = self.random.random()
        if way < 0.4:
            after = self.first + self.random.randrange(2000)
            found = self.queue.messages(state="waiting", limit=5, after=after)
            self.queue.cancel([info.id for info in found])
        elif way < 0.7:
            self.queue.dead_letters.redrive(kind=self.random.choice(KINDS))
        else:
            letters = self.queue.dead_letters.list(limit=3)
            self.queue.dead_letters.discard([letter.id for letter in letters])

    def upkeep(self) -> None:
        if self.random.random() < 0.3:
            self.kills += upkeep_that_is_killed(self.queue, self.url, self.random.randrange(2, 40))
        else:
            self.queue.upkeep()

    def round(self) -> None:
        do = self.random.choice
        do(
            (self.publish, self.publish, self.work, self.work, self.operate, self.end_a_transaction)
        )()
        self.clock.advance(self.random.choice((0, 1, 7, 45)))
        if self.random.random() < 0.5:
            self.upkeep()


@pytest.mark.repeats("with PostgreSQL and SQLite in make test")
def test_minutes_and_counts_add_up_after_a_day_of_everything(
    timed: Queue, url: str, clock: HandClock
) -> None:
    begin = clock.now
    day = Day(timed, url, clock, seed=16)
    for _ in range(ROUNDS):
        day.round()
    while day.open:
        day.end_a_transaction()
    catch_up(timed, clock)
    minutes = timed.minutes(since=begin, until=clock.now, by="kind")
    wanted = from_history(url)
    for kind, n in day.published.items():
        wanted[kind, "published"] = n
    assert added_up(minutes) == wanted
    assert sum(day.published.values()) > 2_000 and day.kills > 5
    assert {name for _, name in wanted} >= {
        "expired",
        "lapsed",
        "cancelled",
        "redriven",
        "discarded",
    }
    hours = timed.minutes(since=begin, until=clock.now, by="kind", step=timedelta(hours=1))
    assert added_up(hours) == wanted
    kept = {(row[0], row[1]): row[2:] for row in query(url, "select * from laneway_kind_count")}
    kept = {key: counts for key, counts in kept.items() if any(counts)}
    live = query(url, "select queue, kind, count(*) from laneway_message group by queue, kind")
    dead = query(url, "select queue, kind, count(*) from laneway_dead group by queue, kind")
    left: dict[Any, list[int]] = {}
    for place, rows in enumerate((live, dead)):
        for queue, kind, n in rows:
            left.setdefault((queue, kind), [0, 0])[place] = n
    assert kept == {key: tuple(counts) for key, counts in left.items()}
    assert query(url, "select known from laneway_fold") == [(1,)]
    sums = query(url, "select coalesce(sum(n), 0) from laneway_dead_queue")[0][0]
    sums += query(url, "select coalesce(sum(n), 0) from laneway_dead_count")[0][0]
    assert sums == sum(n for _, _, n in dead)
    last = [minute for minute in minutes if minute.depth is not None][-1].at
    depths = {minute.kind: minute.depth for minute in minutes if minute.at == last}
    assert +Counter(depths) == Counter({kind.decode(): n for _, kind, n in live})


def test_an_open_transaction_is_counted_when_it_is_committed(
    timed: Queue, url: str, clock: HandClock
) -> None:
    begin = clock.now
    connection = connect(url)
    first, *_, last = timed.publish_many([NewMessage(n) for n in range(3)], connection=connection)
    clock.advance(60)
    newest = timed.publish(4)
    for _ in range(5):
        timed.upkeep()
        clock.advance(60)
    found = timed.minutes(since=begin, until=clock.now)
    assert [(m.at - begin, m.published) for m in found if m.published] == [
        (timedelta(minutes=1), 1)
    ]
    connection.commit()
    connection.close()
    catch_up(timed, clock)
    found = timed.minutes(since=begin, until=clock.now)
    assert [m.published for m in found if m.published] == [3, 1]
    assert first.id and last.id and newest.id
    # What is left are numbers that nobody has: both transactions began the server's life.
    unused = [(1, first.id - 1), (last.id + 1, newest.id - 1)]
    assert query(url, "select first_id, last_id from laneway_gap order by first_id") == unused
    for _ in range(6):
        clock.advance(24 * 3600)
        timed.upkeep()
    assert query(url, "select * from laneway_gap") == []


def test_a_large_late_transaction_is_counted_without_delay(
    timed: Queue, url: str, clock: HandClock
) -> None:
    """Two looks go through it, one upkeep after the other, even if the gap is old."""
    begin = clock.now
    drafts = [NewMessage(n) for n in range(2_500)]
    connection = connect(url)
    timed.publish_many(drafts, connection=connection)
    timed.publish("higher")
    for _ in range(3):
        timed.upkeep()
    clock.advance(25 * 3600)
    connection.commit()
    connection.close()
    seen = []
    for _ in range(3):
        timed.upkeep()
        found = timed.minutes(since=begin, until=clock.now)
        seen.append(sum(m.published for m in found))
    assert seen == [2_001, 2_501, 2_501]
    assert query(url, "select * from laneway_gap") == []


def test_a_rolled_back_publish_is_not_looked_for_forever(
    timed: Queue, url: str, clock: HandClock
) -> None:
    connection = connect(url)
    timed.publish_many([NewMessage(n) for n in range(3)], connection=connection)
    kept = timed.publish(4)
    connection.rollback()
    connection.close()
    for _ in range(2):
        timed.upkeep()
    assert kept.id
    assert query(url, "select first_id, last_id from laneway_gap") == [(1, kept.id - 1)]
    for _ in range(30):
        clock.advance(3600)
        timed.upkeep()
    assert query(url, "select * from laneway_gap") == []


def test_without_a_full_history_minutes_say_so(timed: Queue, url: str, clock: HandClock) -> None:
    begin = clock.now
    timed.publish(1)
    timed.complete(timed.claim())
    for _ in range(3):
        timed.upkeep()
    clock.advance(120)
    timed.upkeep()
    timed.configure(history="failures")
    timed.publish_many([NewMessage(n) for n in range(4)])
    first, *rest = timed.claim(3)
    first.fail("no")
    timed.complete(rest)
    for _ in range(3):
        timed.upkeep()
    one, two = timed.minutes(since=begin, until=clock.now + timedelta(minutes=1))
    assert (one.exact, one.published, one.completed) == (True, 1, 1)
    assert (two.exact, two.failed, two.completed) == (False, 1, 0)
    assert query(url, "select known from laneway_fold") == [(0,)]
    timed.configure(history="all")
    for _ in range(3):
        timed.upkeep()
    assert query(url, "select known from laneway_fold") == [(1,)]
    assert query(url, "select sum(live), sum(dead) from laneway_kind_count") == [(1, 1)]


def test_minutes_are_kept_for_14_days(timed: Queue, url: str, clock: HandClock) -> None:
    timed.publish(1)
    for _ in range(3):
        timed.upkeep()
    assert query(url, "select distinct span from laneway_minute") == [(1,), (60,)]
    timed.complete(timed.claim())
    for _ in range(3):
        timed.upkeep()
    clock.advance(15 * 86_400)
    for _ in range(2):
        timed.upkeep()
        clock.advance(60)
    begin = int(clock.now.timestamp()) // 60 - 14 * 1440
    assert [at for (at,) in query(url, "select at from laneway_minute") if at < begin - 60] == []


def test_nodes_are_counted_when_they_are_released(timed: Queue, url: str, clock: HandClock) -> None:
    """Before the ids that were missing are looked for again, and in as many upkeeps as it takes."""
    calls, children = 3, 1_000
    with timed.flow("late") as flow:
        for _ in range(calls):
            first = flow.add("first")
            for n in range(children):
                flow.add(n, after=first)
    timed.publish("higher")
    for _ in range(3):
        clock.advance(1)
        timed.upkeep()
    parents = timed.claim(calls, lease=timedelta(hours=1))
    for parent in parents:
        timed.complete([parent])
    assert query(url, "select sum(n) from laneway_flow_released") == [(calls * children,)]
    published = "select sum(published) from laneway_minute where span = 1"
    seen = []
    for _ in range(3):
        timed.upkeep()
        seen.append(int(query(url, published)[0][0]))
    wanted = calls + 1 + calls * children
    assert (seen[0] >= wanted - children, seen[1:]) == (True, [wanted, wanted])
    assert query(url, "select * from laneway_flow_released") == []
