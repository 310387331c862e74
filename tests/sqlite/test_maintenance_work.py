"""What maintenance does while it holds the write lock: bounded, however much there is to do.

Work is counted in steps of the virtual machine of SQLite, which does some ten million a second.
"""

import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from laneway import Queue
from laneway.drivers.sqlite.runner import SqliteTransaction
from laneway.drivers.sqlite.write_queue import WriteQueue
from laneway.engines.sqlite import upkeep as upkeep_module
from laneway.engines.sqlite.base import STATEMENTS, statement
from laneway.engines.sqlite.engine import SqliteEngine
from laneway.plan import Row, Statement
from laneway.sqlfile import read_blocks

UPKEEP = Path(upkeep_module.__file__).with_name("upkeep.sql")
ROWS = Path(__file__).with_name("maintenance.sql")
NAMES = {statement(name, "laneway"): name for name in STATEMENTS}
DAY = 86_400_000_000
GRAIN = 100
"""Virtual machine steps between two calls of the progress handler."""
MOST_HELD = 2_500_000
"""Steps under one write lock, with a thousand rows of each of thirty kinds to delete."""
MOST_PER_ROW = 300


@dataclass
class Work:
    """Of one run of upkeep."""

    most: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By statement: the steps of its longest call under the write lock."""
    steps: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    read: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    held: list[int] = field(default_factory=list)
    """Steps under each write lock."""


class CountingTransaction(SqliteTransaction):
    """As the runner's, and counts."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, WriteQueue(str(path), 60), 60)
        self.work = Work()
        self._count = 0
        connection.set_progress_handler(self._tick, GRAIN)

    def _tick(self) -> int:
        self._count += GRAIN
        return 0

    def _begin(self) -> None:
        if not self._begun:
            self.work.held.append(0)
        super()._begin()

    def execute(self, statement: Statement) -> Sequence[Row]:
        name, work = NAMES[statement.sql], self.work
        before, changed = self._count, self._connection.total_changes
        rows = super().execute(statement)
        steps = self._count - before
        if not statement.outside:
            work.held[-1] += steps
            work.most[name] = max(work.most[name], steps)
        work.steps[name] += steps
        work.rows[name] += self._connection.total_changes - changed
        work.read[name] += len(rows)
        return rows


@contextmanager
def full(path: Path, n: int) -> Iterator[sqlite3.Connection]:
    """A file with n rows of everything that maintenance has to do."""
    with Queue(f"sqlite:///{path}", upkeep_every=None) as queue:
        queue.install()
    now = time.time_ns() // 1000
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute("create temp table series (i integer primary key)")
        connection.execute("create temp table terms (n integer, now integer, old integer)")
        connection.executemany("insert into series values (?)", ((i + 1,) for i in range(n)))
        connection.execute("insert into terms values (?, ?, ?)", (n, now, now - 400 * DAY))
        connection.executescript(f"begin; {ROWS.read_text()} commit;")
        yield connection


def upkeep(path: Path, n: int) -> Work:
    with full(path, n) as connection:
        transaction = CountingTransaction(connection, path)
        plan = SqliteEngine().maintenance.upkeep()
        rows: Sequence[Row] | None = None
        try:
            while True:
                rows = transaction.execute(plan.send(rows))  # type: ignore[arg-type]
        except StopIteration:
            transaction.commit()
        return transaction.work


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> tuple[Work, Work]:
    folder = tmp_path_factory.mktemp("maintenance")
    return upkeep(folder / "small.db", 12_000), upkeep(folder / "large.db", 100_000)


def test_a_write_lock_is_held_for_a_bounded_number_of_steps(works: tuple[Work, Work]) -> None:
    for work in works:
        assert max(work.held) < MOST_HELD, sorted(work.most.items(), key=lambda x: -x[1])[:5]


def test_more_rows_do_not_make_a_step_longer(works: tuple[Work, Work]) -> None:
    small, large = works
    longer = {
        name: (small.most[name], steps)
        for name, steps in large.most.items()
        if steps > small.most[name] * 1.3 + 20_000
    }
    assert not longer


def test_every_deleted_row_costs_the_same(works: tuple[Work, Work]) -> None:
    for work in works:
        dear = {
            name: (work.steps[name], rows)
            for name, rows in work.rows.items()
            if rows >= 1000 and work.steps[name] > rows * MOST_PER_ROW
        }
        assert not dear


def test_every_statement_of_maintenance_was_at_work(works: tuple[Work, Work]) -> None:
    """One that is new needs rows in maintenance.sql."""
    small, _ = works
    idle = [name for name in small.steps if _writes(name) and not small.rows[name]] + [
        name for name in read_blocks(UPKEEP.read_text()) if not small.rows[name] + small.read[name]
    ]
    assert not idle


def _writes(name: str) -> bool:
    words = re.sub(r"--[^\n]*", "", STATEMENTS[name]).split(None, 1)
    return words[0] in ("delete", "update") and name.startswith(("delete_", "forget_", "end_"))
