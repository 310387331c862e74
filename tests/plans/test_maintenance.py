"""One step of maintenance reads a bounded number of rows, however many the tables hold.

Its steps are a tenth as large here, so that the same holds for tables that are filled quickly.
"""

from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.postgresql.schema import install_sql
from tests.plans.bench import QUIET

N = 5_000
LIMIT = 100
FOLDER = Path(__file__).parent
MOST_READ = 4_500
"""Rows of a table, or entries of an index. The most are ten times the limit, which are looked up,
and deleted, and those that were deleted before."""
MOST_READ_IDLE = 1_500
"""Counting goes on meanwhile, by ten times the limit."""
TIDIED = (
    *("lease", "message", "stray", "dedupe", "channel", "token", "dead_count", "mail", "pause"),
    *("audit", "worker", "cancel_request", "result", "progress", "flow_count", "flow_edge"),
    *("flow_node", "flow_undecided", "limit_lane", "limit_clock", "limit_wait", "minute"),
)

_COUNTERS = """
select c.relname, pg_stat_get_xact_tuples_returned(c.oid) + case when c.relkind = 'r'
        then pg_stat_get_xact_tuples_fetched(c.oid) else 0 end,
    pg_stat_get_xact_tuples_deleted(c.oid)
from pg_class c
where c.relnamespace = to_regnamespace('laneway') and c.relkind in ('r', 'i')
"""
_MANY_SETS = """
insert into laneway.limit_clock select 'u' || i, array[now() - interval '1 year'], '{1}' from series
"""


@dataclass
class Work:
    """By table and index."""

    read: dict[str, int]
    deleted: dict[str, int]

    def dear(self, most: int) -> dict[str, int]:
        return {name: rows for name, rows in self.read.items() if rows > most}


def step(connection: psycopg.Connection) -> Work:
    """The more of its two transactions."""
    tidied = work(connection, "select from laneway.upkeep_v1(%s) u where u.ran", LIMIT)
    counted = work(connection, "select from laneway.count_v1(%s)", 10 * LIMIT)
    return Work(
        {name: max(rows, counted.read[name]) for name, rows in tidied.read.items()},
        {name: rows + counted.deleted[name] for name, rows in tidied.deleted.items()},
    )


def work(connection: psycopg.Connection, sql: LiteralString, limit: int) -> Work:
    before = {name: rest for name, *rest in connection.execute(_COUNTERS).fetchall()}
    assert connection.execute(sql, (limit,)).rowcount == 1
    after = {name: rest for name, *rest in connection.execute(_COUNTERS).fetchall()}
    connection.commit()
    read, deleted = (
        {name: after[name][column] - before[name][column] for name in before} for column in (0, 1)
    )
    return Work(read, deleted)


@pytest.fixture(scope="module")
def works(server: EmbeddedPostgres) -> dict[str, Work]:
    url = server.create_database("maintenance work")
    found = {}
    with closing(psycopg.connect(url)) as connection:
        connection.execute(install_sql().encode())
        connection.execute(QUIET.encode())
        connection.execute("create temp table series (i integer primary key)")
        connection.execute("insert into series select generate_series(1, %s)", (N,))
        connection.commit()
        for name in ("live", "due"):
            connection.execute((FOLDER / f"maintenance_{name}.sql").read_bytes())
            connection.commit()
            found[name] = step(connection)
            found[f"{name}, again"] = step(connection)
        connection.execute("analyze")
        connection.commit()
        with closing(psycopg.connect(url)) as other:
            found["due, analysed"] = step(other)
        connection.execute(_MANY_SETS)
        connection.commit()
        found["many sets of limits"] = step(connection)
    return found


def test_nothing_is_read_from_end_to_end(works: dict[str, Work]) -> None:
    assert MOST_READ < N
    found = {when: work.dear(MOST_READ) for when, work in works.items()}
    # Names of sets are read, as by claims; what lies behind them is not.
    assert set(found.pop("many sets of limits")) <= {"limit_clock", "limit_clock_pkey"}
    assert not any(found.values()), found
    assert 0 < works["many sets of limits"].deleted["limit_clock"] <= LIMIT // 10


def test_little_is_read_where_nothing_is_to_be_done(works: dict[str, Work]) -> None:
    assert not works["live"].dear(MOST_READ_IDLE)
    assert not works["live, again"].dear(MOST_READ_IDLE)


def test_everything_was_tidied(works: dict[str, Work]) -> None:
    """What is new needs rows in maintenance_due.sql."""
    assert not [name for name in TIDIED if not works["due"].deleted[name]]


def test_many_small_steps_do_the_same(server: EmbeddedPostgres) -> None:
    url = server.create_database("small steps")
    with Queue(url, upkeep_every=None) as queue, psycopg.connect(url, autocommit=True) as own:
        queue.install()
        with queue.flow("wide", keep=timedelta(0)) as flow:
            first = flow.add("first")
            for number in range(30):
                flow.add(f"child {number}", after=first)
        queue.complete(queue.claim(10))
        children = queue.claim(100)
        assert len(children) == 30
        for child in children[1:]:
            queue.complete([child])
        small = "select laneway.upkeep_v1(1)"
        own.execute(small)
        left = own.execute("select count(*) from laneway.flow_count").fetchone()
        assert left and 0 < left[0] < 30
        for _ in range(10):
            own.execute(small)
        # One step reads ten of these: they say that it has ended.
        for live in (-1, *[0] * 9, 1):
            one = "insert into laneway.flow_count (flow_id, live) values (%s, %s)"
            own.execute(one, (flow.id, live))
        own.execute(small)
        ended = "select from laneway.flow where ended_at is not null"
        assert own.execute(ended).rowcount == 0
        queue.complete(children[:1])
        for _ in range(100):
            own.execute(small)
        for table in ("flow", "flow_node", "flow_edge", "flow_count"):
            query = SQL("select from laneway.{}").format(Identifier(table))
            assert own.execute(query).rowcount == 0, table
