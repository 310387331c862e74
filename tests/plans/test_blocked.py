"""Messages that wait for a shared limit cost claims nothing: rows and steps are the same behind one
message a channel and behind many. `make bench-blocked` counts with 100,000."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from statistics import median
from typing import Any

import pytest

from laneway import NewMessage, Queue
from laneway.drivers.mysql.sync import _execute
from laneway.drivers.runner import drive
from laneway.drivers.sqlite.runner import execute
from laneway.drivers.sqlite.url import connect as connect_sqlite
from laneway.drivers.sqlite.url import read_url
from laneway.engines.mysql import MysqlEngine
from laneway.engines.sqlite import SqliteEngine
from laneway.model import HeldLease
from laneway.plan import Plan
from tests.model.mysql import connect
from tests.plans.bench import Bench
from tests.stores import Databases

CHANNELS = 20
MANY = int(os.environ.get("LANEWAY_BLOCKED", "1000"))
LEASE = timedelta(hours=1)
Cost = Callable[[Plan[Any]], tuple[Any, int]]

_PAGES = """
select sum(pg_stat_get_xact_blocks_fetched(c.oid)) from pg_class c
where c.relnamespace = to_regnamespace('laneway') and c.relkind in ('r', 'i')
"""


@contextmanager
def postgresql(url: str) -> Iterator[tuple[Any, Cost]]:
    """Pages of tables and indexes."""
    with closing(Bench(url)) as bench:

        def cost(plan: Plan[Any]) -> tuple[Any, int]:
            before = _pages(bench)
            answer = drive(plan, lambda one: bench._execute(one.sql, one.params))
            pages = _pages(bench) - before
            bench.connection.commit()
            return answer, pages

        yield bench.engine, cost


def _pages(bench: Bench) -> int:
    row = bench.connection.execute(_PAGES.encode()).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def mariadb(url: str) -> Iterator[tuple[Any, Cost]]:
    """Rows."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:

        def cost(plan: Plan[Any]) -> tuple[Any, int]:
            connection.commit()
            cursor.execute("flush status")
            answer = drive(plan, lambda statement: _execute(connection, statement))
            cursor.execute("show session status like 'Handler_read%'")
            rows = sum(int(value) for _, value in cursor.fetchall())
            connection.commit()
            return answer, rows

        yield MysqlEngine(), cost


@contextmanager
def sqlite(url: str) -> Iterator[tuple[Any, Cost]]:
    """Steps of the virtual machine."""
    with closing(connect_sqlite(read_url(url))) as connection:

        def cost(plan: Plan[Any]) -> tuple[Any, int]:
            steps = 0

            def step() -> int:
                nonlocal steps
                steps += 1
                return 0

            connection.set_progress_handler(step, 10)
            answer = drive(plan, lambda statement: execute(connection, statement))
            connection.set_progress_handler(None, 0)
            if connection.in_transaction:
                connection.execute("commit")
            return answer, steps * 10

        yield SqliteEngine(), cost


STORES = {"server": postgresql, "mariadb": mariadb, "sqlite_files": sqlite}


def blocked(url: str, count: int) -> list[HeldLease]:
    """So many messages wait for a limit of two, behind two that run."""
    with Queue(url, upkeep_every=None, lease=LEASE) as queue:
        queue.install()
        queue.limits["api"].set(concurrency=2)
        queue.publish_many([NewMessage(n, "running", limits=["api"]) for n in (1, 2)])
        held = [HeldLease(m.id, m.fence) for m in queue.claim(2)]
        assert len(held) == 2
        for first in range(0, count, 10_000):
            some = range(first, min(first + 10_000, count))
            names = [f"tenant-{number % CHANNELS}" for number in some]
            queue.publish_many([NewMessage(b"", name, limits=["api"]) for name in names])
        while queue.claim(100).look_again == timedelta(0):
            pass
        assert queue.limits["api"].get().waiting == min(count, 10_000)
        return held


def costs(store: Any, url: str, count: int) -> dict[str, float]:
    held = blocked(url, count)
    found: dict[str, list[int]] = {"others": [], "nothing": [], "next": []}
    with Queue(url, upkeep_every=None) as queue, store(url) as (engine, cost):

        def claim(limit: int) -> tuple[Any, int]:
            found: tuple[Any, int] = cost(engine.claims.claim(("default",), limit, LEASE, "bench"))
            return found

        for turn in range(12):
            queue.publish("x", channel="others")
            taken, spent = claim(1)
            (other,) = taken.rows
            cost(engine.leases.complete([HeldLease(other[0], other[1])]))
            found["others"].append(spent)
            _, spent = claim(1)
            found["nothing"].append(spent)
            if turn % 2:
                continue
            cost(engine.leases.complete([held.pop()]))
            taken, spent = claim(1)
            while not taken.rows:
                taken, more = claim(1)
                spent += more
            held.append(HeldLease(taken.rows[0][0], taken.rows[0][1]))
            found["next"].append(spent)
    return {name: median(values) for name, values in found.items()}


@pytest.mark.timeout(3600 if MANY > 10_000 else 60)
@pytest.mark.parametrize(
    "name",
    [
        "server",
        "sqlite_files",
        pytest.param("mariadb", marks=pytest.mark.repeats("SQLite's plans decide the same")),
    ],
)
def test_what_waits_for_a_limit_costs_claims_nothing(
    request: pytest.FixtureRequest, name: str
) -> None:
    databases: Databases = request.getfixturevalue(name)
    few = costs(STORES[name], databases.create_database("few blocked"), CHANNELS)
    many = costs(STORES[name], databases.create_database("many blocked"), MANY)
    sys.stdout.write(f"\n{name}: {few}, behind {MANY}: {many}\n")
    for what, spent in few.items():
        # An index of a thousand pages is a level or two deeper than one of a few.
        assert many[what] <= 1.25 * spent + 30, f"{what}: {spent}, behind {MANY}: {many[what]}"
