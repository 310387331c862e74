"""What upkeep counts on PostgreSQL is what happened: minutes and kept counts add up to the history
and to the tables, also with transactions that commit late, roll back or are killed around a count,
and with two more clients that run upkeep."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event, Thread
from typing import Any

import psycopg
import pytest

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.model import HistoryEntry
from laneway.operations import Minute, MinuteFilter
from tests.looks.minute_sums import count_minutes

KINDS = ("mail", "bill", "")
STEPS = 250
SETTLED = "exit when pg_snapshot_xmin(pg_current_snapshot())::text::bigint < v_state.to_xid;"


STAGE = """
insert into laneway.{} (channel_id, payload, queue, channel, kind)
select laneway.channel_id_v1('q', 'c1'), '1', 'q', 'c1', 'mail' from generate_series(1, 100)
"""


class SteppedClock:
    """Minutes pass as the test goes on, whatever the machine does."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Traffic:
    """Everything that can happen to messages, in an order that only the seed decides."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.random = random.Random(seed)
        self.clock = SteppedClock()
        self.queue = Queue(url, name="q", upkeep_every=None, clock=self.clock)
        self.open: list[psycopg.Connection[Any]] = []

    def step(self) -> None:
        self.clock.advance(self.random.random() * 10)
        what = self.random.choices(
            (
                *(self.publish, self.work, self.publish_late, self.work_late, self.end_late),
                *(self.cancel, self.dead, self.lapse, self.expire, self.queue.upkeep),
            ),
            [6, 6, 2, 1, 3, 1, 1, 1, 0.3, 4],
        )[0]
        what()

    def publish(self) -> None:
        self.queue.publish_many(self._messages())

    def _messages(self, **options: Any) -> list[NewMessage]:
        return [
            NewMessage(n, channel=f"c{n % 7}", kind=self.random.choice(KINDS), **options)
            for n in range(self.random.randrange(1, 40))
        ]

    def work(self) -> None:
        for message in self.queue.claim(self.random.randrange(1, 40)):
            self.clock.advance(self.random.choice((0, 0.01, 0.2)))
            settle: Callable[[], object] = self.random.choice(
                (
                    *(message.complete, message.complete, message.give_back),
                    partial(message.fail, "no"),
                    partial(message.defer, timedelta(seconds=5)),
                    partial(message.defer, timedelta(seconds=1), error=ValueError("again")),
                )
            )
            settle()

    def publish_late(self) -> None:
        """Commits some steps later, or never."""
        connection = psycopg.connect(self.url)
        self.queue.publish_many(self._messages(), connection=connection)
        self.open.append(connection)

    def work_late(self) -> None:
        claimed = self.queue.claim(5)
        if claimed:
            connection = psycopg.connect(self.url)
            self.queue.complete(claimed, connection=connection)
            self.open.append(connection)

    def end_late(self) -> None:
        if not self.open:
            return
        connection = self.open.pop(self.random.randrange(len(self.open)))
        how = self.random.choice(("commit", "commit", "rollback", "kill"))
        if how == "kill":
            with psycopg.connect(self.url, autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])
        elif how == "rollback":
            connection.rollback()
        else:
            connection.commit()
        connection.close()

    def cancel(self) -> None:
        ids = [message.id for message in self.queue.messages(limit=50, state="waiting")]
        self.queue.cancel(ids[:3]) if ids else None

    def dead(self) -> None:
        letters = self.queue.dead_letters.list(limit=6)
        ids = [letter.id for letter in letters]
        if ids:
            self.queue.dead_letters.redrive(ids[::2])
            self.queue.dead_letters.discard(ids[1::2]) if ids[1::2] else None

    def lapse(self) -> None:
        self.queue.publish_many(self._messages(expires_in=timedelta(seconds=3)))

    def expire(self) -> None:
        self.queue.claim(5)
        self.clock.advance(31)

    def finish(self) -> None:
        while self.open:
            self.end_late()
        for _ in range(50):
            self.clock.advance(1)
            self.queue.upkeep()


@pytest.fixture
def traffic(server: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[Traffic]:
    url = server.create_database(request.node.name)
    traffic = Traffic(url, seed=7)
    with traffic.queue as queue:
        queue.install()
        yield traffic


def differences(traffic: Traffic) -> list[str]:
    """Between what was counted and what is in the tables."""
    queue = traffic.queue
    entries = list(history(queue))
    wanted = MinuteFilter(
        datetime(2026, 3, 1, tzinfo=UTC), traffic.clock.now + timedelta(days=1), by="kind"
    )
    ended = [entry for entry in entries if entry.terminal]
    published = [(e.queue, e.kind, e.first_published_at) for e in ended if e.first_published_at]
    live: Counter[tuple[str, str]] = Counter()
    dead: Counter[tuple[str, str]] = Counter()
    for counter, state in ((live, None), (dead, "dead")):
        found = queue.messages(limit=10_000, state=state)  # type: ignore[arg-type]
        assert found.next is None
        published += [(m.queue, m.kind, m.first_published_at) for m in found]
        counter.update((m.queue, m.kind) for m in found)
    minutes = queue.minutes(since=wanted.since, until=wanted.until, by="kind")
    counted = {key(minute): figures(minute) for minute in minutes if any(figures(minute))}
    expected = {
        key(minute): figures(minute) for minute in count_minutes(wanted, entries, published)
    }
    wrong = [f"{k}: {counted.get(k)} counted, {expected.get(k)} happened"
             for k in sorted(counted.keys() | expected.keys(), key=str)
             if counted.get(k) != expected.get(k)]  # fmt: skip
    with psycopg.connect(traffic.url) as connection:
        kept = connection.execute(
            "select queue, kind, live, dead from laneway.live_count"
        ).fetchall()
    for counter, column in ((live, 2), (dead, 3)):
        known = {(row[0], row[1]): row[column] for row in kept if row[column]}
        if known != dict(counter):
            wrong.append(f"kept {known}, there are {dict(counter)}")
    return wrong


def history(queue: Queue) -> Iterator[HistoryEntry]:
    position = "1.0"
    while page := queue.history_since(position, limit=10_000).entries:
        yield from page
        position = queue.history_since(position, limit=10_000).position


def key(minute: Minute) -> tuple[datetime, str | None, str | None]:
    return minute.at, minute.queue, minute.kind


def figures(minute: Minute) -> tuple[Any, ...]:
    return (
        *(minute.published, minute.started, minute.completed, minute.retried, minute.failed),
        *(minute.expired, minute.deferred, minute.given_back, minute.cancelled, minute.lapsed),
        *(minute.redriven, minute.discarded, minute.dead, *minute.waits, *minute.runs),
    )


@contextmanager
def others_run_upkeep(traffic: Traffic) -> Iterator[None]:
    stop = Event()

    def run() -> None:
        with Queue(traffic.url, name="q", upkeep_every=None, clock=traffic.clock) as queue:
            while not stop.wait(0.01):
                queue.upkeep()

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_what_is_counted_is_what_happened(traffic: Traffic) -> None:
    with others_run_upkeep(traffic):
        for _ in range(STEPS):
            traffic.step()
    traffic.finish()
    assert not differences(traffic)
    outcomes = Counter(entry.outcome for entry in history(traffic.queue))
    assert outcomes.keys() >= {
        "completed",
        "retried",
        "failed",
        "expired",
        "given_back",
        "deferred",
    }
    assert outcomes.keys() >= {"cancelled", "lapsed", "redriven", "discarded"}
    minutes = traffic.queue.minutes(since=datetime(2026, 3, 1, tzinfo=UTC))
    (last,) = [minute for minute in minutes if minute.at == minutes[-1].at]
    assert last.depth == len(traffic.queue.messages(limit=10_000))
    assert all(minute.exact for minute in minutes)


def test_a_count_that_waits_for_nobody_is_found(traffic: Traffic) -> None:
    """The same without the check that all transactions before the noted one have ended."""
    with psycopg.connect(traffic.url, autocommit=True) as connection:
        row = connection.execute(
            "select pg_get_functiondef('laneway.count_v1'::regproc)"
        ).fetchone()
        assert row is not None and SETTLED in row[0]
        connection.execute(row[0].replace(SETTLED, "").encode())
    for _ in range(STEPS // 2):
        traffic.step()
    traffic.finish()
    assert differences(traffic)


def test_small_parts_add_up_too(traffic: Traffic) -> None:
    """Positions in the middle of a transaction, and of a range of ids."""
    for _ in range(40):
        traffic.publish()
        traffic.work()
    with psycopg.connect(traffic.url, autocommit=True) as connection:
        for _ in range(2000):
            row = connection.execute(
                "select * from laneway.count_v1(7, %s)", [traffic.clock.now]
            ).fetchone()
            if row == (0, False):
                break
    assert not differences(traffic)


def test_a_schema_in_use_begins_with_one_count(traffic: Traffic) -> None:
    for _ in range(60):
        traffic.step()
    with psycopg.connect(traffic.url, autocommit=True) as connection:
        connection.execute("truncate laneway.minute, laneway.live_count")
        connection.execute("update laneway.counting set begun = false, xid = 0, to_xid = null")
    for _ in range(60):
        traffic.step()
    traffic.finish()
    assert [wrong for wrong in differences(traffic) if wrong.startswith("kept")] == []


def test_what_was_not_kept_is_said(traffic: Traffic) -> None:
    traffic.publish()
    traffic.finish()
    traffic.queue.configure(history="none")
    traffic.work()
    traffic.publish()
    traffic.finish()
    (row,) = traffic.queue.minutes(since=datetime(2026, 3, 1, tzinfo=UTC), step=timedelta(days=1))
    assert not row.exact
    traffic.queue.configure(history="all")
    traffic.publish()
    traffic.work()
    traffic.finish()
    assert [wrong for wrong in differences(traffic) if wrong.startswith("kept")] == []


def test_a_bulk_publish_whose_ids_are_older_is_counted(traffic: Traffic) -> None:
    traffic.publish()
    with psycopg.connect(traffic.url, autocommit=True) as connection:
        (name,) = connection.execute("select laneway.stage_v1('job', 1)").fetchone() or ("",)
        connection.execute(STAGE.format(name).encode())
        traffic.publish()
        traffic.queue.upkeep()
        traffic.queue.upkeep()
        connection.execute(
            "select laneway.publish_staged_v1('job', %s, %s, null, null)", [[name], [100]]
        )
    traffic.publish()
    traffic.finish()
    assert not differences(traffic)
