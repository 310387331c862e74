"""Figures per minute add up to the history and the tables, whoever is killed in between."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import NewMessage, Queue
from laneway.drivers.runner import drive
from laneway.drivers.sqlite.runner import SqliteRunner, execute
from laneway.drivers.sqlite.url import connect, read_url
from laneway.engines.minutes import COUNTS, OUTCOMES
from laneway.engines.sqlite import SqliteEngine
from laneway.engines.sqlite.operate import looks
from laneway.model import Draft, HeldLease
from laneway.operations import Minute, MinuteFilter
from laneway.plan import Plan, Statement
from tests.model.sqlite import VIOLATIONS

ROOT = Path(__file__).parent.parent.parent
PROCESSES = 3
KILLS = 6
BETWEEN = 300
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

Figures = dict[tuple[str, str], dict[str, int]]


def figures(eyes: sqlite3.Connection, span: int) -> Figures:
    """What the minutes or hours say, by queue and kind, with the histograms added up."""
    times = " + ".join(f"sum(wait_{n})" for n in range(13))
    times += ", " + times.replace("wait", "run")
    sums = ", ".join(f"sum({name})" for name in COUNTS)
    sql = f"select queue, kind, {sums}, {times} from laneway_minute where span = ? group by 1, 2"  # noqa: S608
    names = (*COUNTS, "waits", "runs")
    rows = eyes.execute(sql, [span]).fetchall()
    return {(row[0], row[1]): dict(zip(names, row[2:], strict=True)) for row in rows}


def told(eyes: sqlite3.Connection) -> Figures:
    """The same from the history and the tables."""
    found: Figures = {}
    empty = dict.fromkeys((*COUNTS, "waits", "runs"), 0)
    everything = """
        select m.id, c.queue, m.kind
        from laneway_message m join laneway_channel c on c.id = m.channel_id
        union select id, queue, kind from laneway_dead
        union select message_id, queue, kind from laneway_history where outcome <> 'stale'"""
    for _, queue, kind in eyes.execute(everything):
        found.setdefault((queue, kind), dict(empty))["published"] += 1
    ends = """select queue, kind, outcome, dead, claimed_at is not null, count(*)
        from laneway_history group by 1, 2, 3, 4, 5"""
    for queue, kind, outcome, dead, attempt, count in eyes.execute(ends):
        if outcome not in OUTCOMES:
            continue
        row = found[queue, kind]
        row[outcome] += count
        row["dead"] += count * dead
        for name in ("started", "waits", "runs") if attempt else ():
            row[name] += count
    return found


def kept_kinds(eyes: sqlite3.Connection) -> list[tuple[str, str, int]]:
    return eyes.execute(
        "select queue, kind, live from laneway_kind_count where live <> 0 order by 1, 2"
    ).fetchall()


def live_kinds(eyes: sqlite3.Connection) -> list[tuple[str, str, int]]:
    return eyes.execute(
        """select c.queue, m.kind, count(*) from laneway_message m
        join laneway_channel c on c.id = m.channel_id group by 1, 2 order by 1, 2"""
    ).fetchall()


def settled(queue: Queue, eyes: sqlite3.Connection) -> None:
    """Runs upkeep until it has counted everything."""
    position = """select f.message_id = s.message_id and f.history_id = (select max(id) from
        laneway_history) from laneway_fold f, laneway_state s"""
    for _ in range(100):
        queue.upkeep()
        if eyes.execute(position).fetchone()[0]:
            return
    raise AssertionError("upkeep does not come to an end")


@pytest.mark.timeout(120)
def test_figures_add_up_although_processes_are_killed(url: str, path: Path) -> None:
    with Queue(url, upkeep_every=None) as queue, closing(sqlite3.connect(path)) as eyes:
        queue.install()
        queue.configure(backoff_initial=0)
        running = [start(url) for _ in range(PROCESSES)]
        for number in range(1, KILLS + 1):
            ended(eyes, number * BETWEEN, running)
            time.sleep(random.uniform(0, 0.1))
            victim = running.pop(0)
            victim.send_signal(signal.SIGKILL)
            assert victim.communicate()[1] == ""
            running.append(start(url))
        for process in running:
            process.send_signal(signal.SIGKILL)
            assert process.communicate()[1] == ""
        settled(queue, eyes)
        counted = told(eyes)
        total = {name: sum(row[name] for row in counted.values()) for name in COUNTS}
        assert all(total.values()), f"not everything happened: {total}"
        assert figures(eyes, 1) == counted
        assert figures(eyes, 60) == counted
        assert kept_kinds(eyes) == live_kinds(eyes)
        assert [row[0] for row in eyes.execute(VIOLATIONS)] == []
        now = datetime.now(UTC)
        minutes = queue.minutes(since=now - DAY, until=now + HOUR, step=HOUR, by="kind")
        assert sum(minute.published for minute in minutes) == total["published"]
        assert sum(sum(minute.waits) for minute in minutes) == total["started"]


def ended(eyes: sqlite3.Connection, count: int, running: "list[subprocess.Popen[str]]") -> None:
    """Waits until so much has ended."""
    last = "select coalesce(max(id), 0) from laneway_history"
    while eyes.execute(last).fetchone()[0] < count:
        assert not any(process.poll() for process in running), "one has failed"
        time.sleep(0.01)


def start(url: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.sqlite.figures_process", url]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_kept_counts_are_those_of_the_tables(
    url: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Queue(url, upkeep_every=None) as queue, closing(sqlite3.connect(path)) as eyes:
        queue.install()
        names = [f"channel {number}" for number in range(100)]
        queue.publish_many([NewMessage(b"", name) for name in names for _ in range(3)])
        queue.publish_many([NewMessage(b"", name, delay=HOUR) for name in names[:20]])
        queue.fail(queue.claim(10), "no")
        queue.claim(15)
        exact = queue.stats()
        assert exact[0].exact
        for module in ("looks", "counts"):
            monkeypatch.setattr(f"laneway.engines.sqlite.operate.{module}.CHANNELS", 10)
        cut = queue.stats()[0]
        assert not cut.exact and cut.as_of is None and cut.waiting < exact[0].waiting
        while (kept := queue.stats()[0]).as_of is None:
            queue.upkeep()
        assert not kept.exact
        for name in ("waiting", "scheduled", "leased", "dead", "channels", "oldest_due"):
            assert getattr(kept, name) == getattr(exact[0], name), name
        queue.publish_many([NewMessage(b"", name) for name in names])
        monkeypatch.setattr(looks, "_FRESH", -1)
        assert queue.stats()[0].waiting == exact[0].waiting + 100, "what came since is added"
        monkeypatch.setattr(looks, "_SAMPLE", 20)
        assert queue.stats()[0].waiting == exact[0].waiting + 100, "judged by the last ones"
        assert eyes.execute("select count(*) from laneway_fullest").fetchone()[0] == 100


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


class Engine:
    """An engine with a clock of its own, one statement at a time if need be."""

    def __init__(self, url: str) -> None:
        self.clock = Clock()
        self.engine = SqliteEngine(clock=self.clock)
        self.url = url
        self._runner = SqliteRunner(url, pool_size=1)
        self.run(self.engine.schema.install())

    def run(self, plan: Plan[Any]) -> Any:
        return self._runner.run(plan)

    def publish(self, count: int, kind: str = "k") -> None:
        text = "application/octet-stream"
        rest = (None, None, None, 0, None, None, None, None, 20)
        self.run(self.engine.messages.publish([Draft(b"", "q", "c", kind, text, *rest)] * count))

    def finish(self, count: int) -> None:
        taken = self.run(self.engine.claims.claim(("q",), count, HOUR, "w"))
        held = [HeldLease(row[0], row[1]) for row in taken.rows]
        assert len(held) == count
        self.run(self.engine.leases.complete(held))

    def minutes(self, since: datetime = NOON, **options: Any) -> list[Minute]:
        until = self.clock.now + MINUTE
        found: list[Minute] = self.run(
            self.engine.inspection.minutes(MinuteFilter(since, until, **options))
        )
        return found

    @property
    def counting(self) -> Any:
        """The part of the engine that counts."""
        return self.engine.inspection.minutes.__self__  # type: ignore[attr-defined]

    def pass_time(self, length: timedelta) -> None:
        self.clock.now += length


@pytest.fixture
def world(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine._runner.close()


class CrashedHereError(Exception):
    pass


def crashing(plan: Plan[Any], after: int) -> Plan[Any]:
    """Stops after so many statements."""
    statement = next(plan)
    while True:
        if not after:
            raise CrashedHereError
        after -= 1
        try:
            statement = plan.send((yield statement))
        except StopIteration as end:
            return end.value


def test_a_crash_between_any_two_statements_counts_nothing_twice(world: Engine) -> None:
    world.publish(7)
    world.finish(4)
    world.pass_time(MINUTE)
    for after in range(100):
        try:
            world.run(crashing(world.engine.maintenance.upkeep(), after))
            break
        except CrashedHereError:
            pass
    else:
        raise AssertionError("the plan has no end")
    assert after > 5
    (one,) = [minute for minute in world.minutes() if minute.published]
    assert (one.published, one.started, one.completed, sum(one.runs)) == (7, 4, 4, 4)
    assert one.depth == 3 and one.oldest_due == NOON
    (kind,) = [minute for minute in world.minutes(by="kind") if minute.published]
    assert kind.depth == 3 and kind.oldest_due == NOON


def test_two_upkeeps_at_once_count_once(world: Engine, url: str) -> None:
    """The second one has read the same rows, and writes after the first one."""
    world.publish(5)
    late = world.counting.fold()
    read: list[Statement] = []
    statement = next(late)
    with closing(connect(read_url(url))) as connection:
        while not statement.sql.startswith("update"):
            read.append(statement)
            statement = late.send(execute(connection, statement))
        assert len(read) == 3
        world.run(world.engine.maintenance.upkeep())
        answer = execute(connection, statement)
        assert not answer, "somebody else has counted them"
        with pytest.raises(StopIteration):
            late.send(answer)
    assert [minute.published for minute in world.minutes()] == [5]


def test_minutes_without_all_of_the_history_say_so(world: Engine) -> None:
    def configure(history: Any) -> None:
        world.run(world.engine.maintenance.configure(history, None, None, None, None))

    def figures() -> list[tuple[int, int, int, bool]]:
        world.run(world.engine.maintenance.upkeep())
        return [
            (round((m.at - NOON) / MINUTE), m.published, m.completed, m.exact)
            for m in world.minutes()
        ]

    world.publish(2)
    world.finish(1)
    assert figures() == [(0, 2, 1, True)]
    world.pass_time(MINUTE)
    world.publish(3)
    configure("none")
    world.pass_time(MINUTE)
    world.publish(4)
    world.finish(8)
    world.pass_time(MINUTE)
    configure("all")
    world.pass_time(MINUTE)
    world.publish(1)
    world.finish(1)
    found = {minute: rest for minute, *rest in figures()}
    assert found[0] == [2, 1, True]
    assert not found.get(1, [0, 0, False])[2], "published before, and not counted before"
    assert not found.get(2, [0, 0, False])[2]
    assert found[4] == [1, 1, True]
    hours = world.minutes(step=HOUR)
    assert [hour.exact for hour in hours] == [False]


def test_the_depth_of_a_queue_that_became_empty_is_noted_once_more(world: Engine) -> None:
    world.publish(3)
    depths: list[int | None] = []
    for _ in range(2):
        world.pass_time(MINUTE)
        world.run(world.engine.maintenance.upkeep())
    world.finish(3)
    for _ in range(3):
        world.pass_time(MINUTE)
        world.run(world.engine.maintenance.upkeep())
    depths = [minute.depth for minute in world.minutes()]
    assert depths == [3, 3, 0]
    assert [hour.depth for hour in world.minutes(step=HOUR)] == [0]
    assert [kind.depth for kind in world.minutes(by="kind")] == [3, 3, 0]
    assert [kind.depth for kind in world.minutes(kind="k")] == [3, 3, 0]


def test_a_kind_of_which_nothing_is_left_has_no_depth_where_others_do(world: Engine) -> None:
    world.publish(2, kind="short")
    world.finish(2)
    world.publish(1, kind="long")
    for _ in range(6):
        world.pass_time(MINUTE)
        world.run(world.engine.maintenance.upkeep())
    depths = {minute.kind: minute.depth for minute in world.minutes(step=5 * MINUTE, by="kind")}
    assert depths == {"short": 0, "long": 1}
    assert [minute.depth for minute in world.minutes(step=5 * MINUTE, kind="short")] == [0]


def test_depths_by_kind_come_back_after_a_time_without_a_full_history(
    world: Engine, path: Path
) -> None:
    """What ends meanwhile is not in the history: the messages are counted anew."""

    def configure(history: Any) -> None:
        world.run(world.engine.maintenance.configure(history, None, None, None, None))

    def last_depth() -> int | None:
        world.pass_time(MINUTE)
        world.run(world.engine.maintenance.upkeep())
        found = world.minutes(since=world.clock.now - MINUTE, by="kind")
        return found[0].depth if found else None

    world.publish(9)
    assert last_depth() == 9
    configure("none")
    world.finish(2)
    assert last_depth() is None, "two have ended, and nobody counted them"
    configure("all")
    world.finish(3)
    assert last_depth() == 4
    world.finish(1)
    assert last_depth() == 3
    with closing(sqlite3.connect(path)) as eyes:
        assert kept_kinds(eyes) == live_kinds(eyes) == [("q", "k", 3)]


def test_a_recount_of_before_another_change_of_the_history_is_not_used(
    world: Engine, url: str, path: Path
) -> None:
    """The setting changes twice, and something ends unseen, between its read and its write."""

    def configure(history: Any) -> None:
        world.run(world.engine.maintenance.configure(history, None, None, None, None))

    world.publish(5)
    world.run(world.engine.maintenance.upkeep())
    configure("none")
    configure("all")
    late = world.counting._kind_counts.recount_kinds()
    statement = next(late)
    with closing(connect(read_url(url))) as connection:
        while not statement.sql.startswith("update"):
            statement = late.send(execute(connection, statement))
        configure("none")
        world.finish(2)
        configure("all")
        assert not execute(connection, statement)
    world.run(world.engine.maintenance.upkeep())
    with closing(sqlite3.connect(path)) as eyes:
        assert kept_kinds(eyes) == [("q", "k", 3)]


def test_messages_of_before_the_migration_are_counted(world: Engine, path: Path) -> None:
    """One of them ends after the position that the count is of: the fold takes it off."""
    world.publish(4)
    world.run(world.engine.maintenance.upkeep())
    with closing(sqlite3.connect(path)) as eyes, eyes:
        eyes.execute("update laneway_fold set kinds_counted = null")
        eyes.execute("delete from laneway_kind_count")
    world.finish(1)
    world.pass_time(MINUTE)
    world.run(world.engine.maintenance.upkeep())
    assert [minute.depth for minute in world.minutes(by="kind") if minute.published] == [3]


def test_figures_are_kept_for_14_days(world: Engine, path: Path) -> None:
    world.publish(1)
    world.run(world.engine.maintenance.upkeep())
    world.pass_time(DAY)
    world.publish(1)
    world.run(world.engine.maintenance.upkeep())
    world.pass_time(13 * DAY + HOUR)
    world.run(world.engine.maintenance.upkeep())
    kept = world.minutes(step=HOUR)
    assert [round((hour.at - NOON) / DAY) for hour in kept if hour.published] == [1]


def test_the_history_is_kept_until_it_is_counted(world: Engine, path: Path) -> None:
    world.publish(3)
    world.finish(3)
    world.pass_time(40 * DAY)
    fold, counted = world.counting.fold, False

    def later() -> Plan[bool]:
        return bool(counted and (yield from fold()))

    world.counting.fold = later
    world.run(world.engine.maintenance.upkeep())
    with closing(sqlite3.connect(path)) as eyes:
        assert eyes.execute("select count(*) from laneway_history").fetchone() == (3,)
        counted = True
        world.run(world.engine.maintenance.upkeep())
        world.run(world.engine.maintenance.upkeep())
        assert eyes.execute("select count(*) from laneway_history").fetchone() == (0,)
    (minute,) = world.minutes()[:1]
    assert (minute.published, minute.completed) == (3, 3)


def test_idle_upkeep_writes_nothing(world: Engine) -> None:
    world.publish(1)
    world.finish(1)
    for _ in range(3):
        world.run(world.engine.maintenance.upkeep())
    written = []

    def note(statement: Statement) -> Any:
        written.append(statement.sql) if not statement.outside else None
        with closing(connect(read_url(world.url))) as connection:
            return execute(connection, statement)

    world.pass_time(MINUTE)
    drive(world.engine.maintenance.upkeep(), note)
    assert written == []
