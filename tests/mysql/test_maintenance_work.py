"""One step of maintenance reads and locks a bounded number of rows, however many the tables hold.

Its steps are a twentieth of the usual here, so that the same holds for tables that are filled
quickly. ``LANEWAY_MAINTENANCE=5000`` fills them as they would be with 100,000.
"""

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.drivers.mysql.sync import _execute
from laneway.drivers.runner import drive
from laneway.engines.mysql import MysqlEngine, flows_release, shared_limits
from laneway.engines.mysql import upkeep as mysql_upkeep
from laneway.engines.mysql.base import MysqlSql
from laneway.engines.mysql.operate import minutes
from laneway.plan import Row, Statement
from laneway.sqlfile import read_blocks
from tests.model.mysql import connect

N = int(os.environ.get("LANEWAY_MAINTENANCE", "1800"))
FOLDER = Path(__file__).parent
UPKEEP = Path(mysql_upkeep.__file__).with_suffix(".sql")
DAY = 86_400_000_000

BATCHES = {
    mysql_upkeep: ("_LIMIT", "_DEAD_COUNTS", "_WAKES", "_STAMP_BATCH", "_STAMP_LIMIT"),
    minutes: ("_CHUNK", "_GAPS", "_LATE"),
    flows_release: ("_FORGOTTEN", "_FORGOTTEN_EDGES", "MOST_DECIDED"),
    shared_limits: ("_FORGOTTEN",),
}
MOST_READ = 1_600
"""By one statement. The most are 500 of which each is read in a list, in its table, and again when
it is deleted."""
MOST_READ_IDLE = 250
MOST_OF_ALL = 50_000
MOST_LOCKED = 12_000


@dataclass
class Work:
    """Of one run of upkeep."""

    most: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By statement: the rows that its longest call read."""
    read: int = 0
    locked: int = 0


class NamingSql(MysqlSql):
    """Knows which statement was made last."""

    last: ClassVar[str] = ""

    def statement(self, name: str, *params: Any) -> Statement:
        NamingSql.last = name
        return super().statement(name, *params)

    def union(self, name: str, rows: Sequence[Sequence[Any]]) -> Statement:
        NamingSql.last = name
        return super().union(name, rows)


def upkeep(connection: Any) -> Work:
    work = Work()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("laneway.engines.mysql.engine.MysqlSql", NamingSql)
        engine = MysqlEngine()
    with connection.cursor() as cursor:
        _rows_read(cursor)
        own = -_rows_read(cursor) + _rows_read(cursor)

        def execute(statement: Statement) -> Sequence[Row]:
            name, before = NamingSql.last, _rows_read(cursor)
            rows = _execute(connection, statement)
            read = _rows_read(cursor) - before - own
            work.most[name] = max(work.most[name], read)
            work.read += read
            return rows

        assert drive(engine.maintenance.upkeep(), execute).ran
        work.locked = _rows_locked(cursor)
        connection.commit()
    return work


def _rows_read(cursor: Any) -> int:
    cursor.execute("show session status like 'Handler_read%'")
    return sum(int(value) for _, value in cursor.fetchall())


def _rows_locked(cursor: Any) -> int:
    """In this transaction. The server looks anew every tenth of a second."""
    cursor.execute("do sleep(0.2)")
    cursor.execute(
        "select trx_rows_locked from information_schema.innodb_trx "
        "where trx_mysql_thread_id = connection_id()"
    )
    return int(cursor.fetchone()[0])


def fill(connection: Any, name: str) -> None:
    with connection.cursor() as cursor:
        for statement in read_statements(name):
            cursor.execute(statement)
    connection.commit()


def read_statements(name: str) -> list[str]:
    return [one for one in (FOLDER / name).read_text().split(";\n") if one.strip()]


def make_smaller(patch: pytest.MonkeyPatch, times: int) -> None:
    for module, names in BATCHES.items():
        for name in names:
            patch.setattr(module, name, max(1, getattr(module, name) // times))


@pytest.fixture(scope="module")
def works(mariadb: EmbeddedMariaDB) -> tuple[Work, Work, Work]:
    """With full tables and nothing to do; with as much to do; and one more."""
    url = mariadb.create_database("maintenance work")
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        queue.upkeep()
    with pytest.MonkeyPatch.context() as patch, closing(connect(url)) as connection:
        make_smaller(patch, 20)
        with connection.cursor() as cursor:
            now = time.time_ns() // 1000
            cursor.execute(f"set @n = {N}, @now = {now}, @old = {now - 400 * DAY}")
            cursor.execute("create table series (i int primary key)")
            numbers = [(number + 1,) for number in range(N)]
            cursor.executemany("insert into series values (%s)", numbers)
        fill(connection, "maintenance_live.sql")
        idle = upkeep(connection)
        fill(connection, "maintenance_due.sql")
        due = upkeep(connection)
        with connection.cursor() as cursor:
            # Listeners are forgotten when their mail is.
            cursor.execute("delete from laneway_mail")
        return idle, due, upkeep(connection)


def test_no_statement_reads_more_where_tables_hold_more(works: tuple[Work, Work, Work]) -> None:
    assert MOST_READ < N
    dear = [item for work in works for item in work.most.items() if item[1] > MOST_READ]
    assert not dear


def test_little_is_read_where_nothing_is_to_be_done(works: tuple[Work, Work, Work]) -> None:
    idle, *_ = works
    assert not [item for item in idle.most.items() if item[1] > MOST_READ_IDLE]


def test_a_step_reads_and_locks_a_bounded_number_of_rows(works: tuple[Work, Work, Work]) -> None:
    assert max(work.read for work in works) <= MOST_OF_ALL
    assert max(work.locked for work in works) <= MOST_LOCKED


def test_every_statement_of_maintenance_was_at_work(works: tuple[Work, Work, Work]) -> None:
    """One that is new needs rows in maintenance_due.sql."""
    used = {name for work in works for name in work.most}
    assert not sorted(read_blocks(UPKEEP.read_text()).keys() - used)


def test_many_small_steps_do_the_same(mariadb: EmbeddedMariaDB, monkeypatch: Any) -> None:
    url = mariadb.create_database("small steps")
    with Queue(url, upkeep_every=None) as queue, closing(connect(url)) as connection:
        queue.install()
        with queue.flow("wide", keep=timedelta(0)) as flow:
            first = flow.add("first")
            for number in range(30):
                flow.add(f"child {number}", after=first)
        (root,) = queue.claim(10)
        queue.complete([root])
        children = queue.claim(100)
        assert len(children) == 30
        for child in children[1:]:
            queue.complete([child])
        for number in range(6):
            queue.channel(f"gone {number % 2}").limit(concurrency=1)
            queue.cancel([queue.publish(number, channel=f"gone {number % 2}").id])
        for number in (0, 1):
            queue.channel(f"gone {number}").remove()
        make_smaller(monkeypatch, 1000)
        for _ in range(50):
            queue.upkeep()
        assert rows(connection, "flow_count") == 0
        # One step reads ten of these: they say that it has ended.
        with connection.cursor() as cursor:
            for live in (-1, *[0] * 9, 1):
                one = "insert into laneway_flow_count values (null, %s, 0, %s, 0, 0, 0, 0)"
                cursor.execute(one, (flow.id, live))
        connection.commit()
        queue.upkeep()
        assert rows(connection, "flow_count") == 1
        assert rows(connection, "flow where ended_at is not null") == 0
        queue.complete(children[:1])
        for _ in range(100):
            queue.upkeep()
        left = ("flow", "flow_node", "flow_edge", "flow_count", "flow_name", "wake")
        assert {name: rows(connection, name) for name in left} == dict.fromkeys(left, 0)
        assert rows(connection, "channel where closing") == 0
        assert query(connection, "select sum(published) from laneway_minute where span = 1") == 37


def test_a_recount_leaves_out_what_is_in_a_gap(mariadb: EmbeddedMariaDB) -> None:
    """That is counted when the gap is looked at."""
    url = mariadb.create_database("recount")
    with Queue(url, upkeep_every=None) as queue, closing(connect(url)) as connection:
        queue.install()
        ids = [queue.publish(number).id or 0 for number in range(6)]
        for _ in range(3):
            queue.upkeep()
        with connection.cursor() as cursor:
            gap = "insert into laneway_gap values (%s, %s, 0, %s)"
            cursor.execute(gap, (ids[0] - 1, ids[0] - 1, 2**60))
            cursor.execute(gap, (ids[2], ids[3], 2**60))
            cursor.execute("update laneway_fold set known = 0")
        connection.commit()
        queue.upkeep()
        assert query(connection, "select sum(live) from laneway_kind_count") == 4


def rows(connection: Any, table: str) -> int:
    return query(connection, f"select count(*) from laneway_{table}")  # noqa: S608


def query(connection: Any, sql: str) -> int:
    connection.commit()
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[0])
