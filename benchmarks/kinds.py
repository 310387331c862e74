"""What does a claim of one kind cost beside a claim of all? `python -m benchmarks.kinds`.

Of claims of a hundred, a message: buffers on PostgreSQL, rows that the server reads on MariaDB,
steps of its virtual machine on SQLite.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedMariaDB, find_mariadb
from laneway.drivers.mysql.sync import _execute as run_on_mysql
from laneway.drivers.runner import drive
from laneway.drivers.sqlite.runner import execute
from laneway.drivers.sqlite.url import connect, read_url
from laneway.engines.mysql import MysqlEngine
from laneway.engines.postgresql import PostgresqlEngine
from laneway.engines.sqlite import SqliteEngine
from laneway.model import HeldLease
from laneway.plan import Plan, Row, Statement, Taken

from . import mariadb
from .bench import PAYLOAD, Bench, running, say, tidy
from .meter import Meter
from .report import Table, show

T = TypeVar("T")

RED, BLUE = "red", "blue"
QUEUE = "default"
BATCH = 100
_CHUNK = 1000
_LEASE = timedelta(hours=1)


class Size(NamedTuple):
    messages: int = 10_000
    front: int = 1_000_000
    channels: Sequence[int] = (1, 100)


class Session(Protocol):
    """Claims and completes through the engine's plans, and adds up what the claims cost."""

    cost: float

    def claim(self, kinds: tuple[str, ...] | None) -> Taken: ...

    def complete(self, taken: Taken) -> None: ...

    def close(self) -> None: ...


class Side(Protocol):
    """A database to measure on."""

    name: str
    unit: str

    def database(self) -> AbstractContextManager[str]: ...

    def session(self, url: str) -> Session: ...

    def tidy(self, url: str) -> None: ...


class PostgresqlSession:
    def __init__(self, url: str) -> None:
        self._meter = Meter(url)
        self._engine = PostgresqlEngine()
        self.cost = 0.0

    def claim(self, kinds: tuple[str, ...] | None) -> Taken:
        return self._run(self._engine.claims.claim((QUEUE,), BATCH, _LEASE, "bench", kinds), True)

    def complete(self, taken: Taken) -> None:
        self._run(self._engine.leases.complete(taken.rows), False)

    def close(self) -> None:
        self._meter.close()

    def _run(self, plan: Plan[T], counted: bool) -> T:
        def run(statement: Statement) -> Sequence[Row]:
            rows = self._meter.execute(statement)
            self.cost += self._meter.used.buffers if counted else 0
            return rows

        return drive(plan, run)


class SqliteSession:
    def __init__(self, url: str) -> None:
        self._connection = connect(read_url(url))
        self._engine = SqliteEngine()
        self.cost = 0.0

    def claim(self, kinds: tuple[str, ...] | None) -> Taken:
        self._connection.set_progress_handler(self._step, 1)
        plan = self._engine.claims.claim((QUEUE,), BATCH, _LEASE, "bench", kinds)
        taken = self._run(plan)
        self._connection.set_progress_handler(None, 0)
        return taken

    def complete(self, taken: Taken) -> None:
        self._run(self._engine.leases.complete([HeldLease(row[0], row[1]) for row in taken.rows]))

    def close(self) -> None:
        self._connection.close()

    def _step(self) -> int:
        self.cost += 1
        return 0

    def _run(self, plan: Plan[T]) -> T:
        self._connection.execute("begin immediate")
        answer = drive(plan, lambda statement: execute(self._connection, statement))
        self._connection.execute("commit")
        return answer


class MariadbSession:
    """Counts what the server's handlers read for the session."""

    def __init__(self, url: str) -> None:
        self._connection = mariadb.connect(url)
        self._engine = MysqlEngine()
        self.cost = 0.0
        first = self._reads()
        self._own = self._reads() - first  # what asking costs

    def claim(self, kinds: tuple[str, ...] | None) -> Taken:
        before = self._reads()
        taken = self._run(self._engine.claims.claim((QUEUE,), BATCH, _LEASE, "bench", kinds))
        self.cost += self._reads() - before - self._own
        return taken

    def complete(self, taken: Taken) -> None:
        self._run(self._engine.leases.complete(taken.rows))

    def close(self) -> None:
        self._connection.close()

    def _reads(self) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute("show session status like 'Handler_read%'")
            return sum(int(value) for _, value in cursor.fetchall())

    def _run(self, plan: Plan[T]) -> T:
        answer = drive(plan, lambda statement: run_on_mysql(self._connection, statement))
        self._connection.commit()
        return answer


class Postgresql:
    name, unit = "PostgreSQL", "buffers"

    def __init__(self, bench: Bench) -> None:
        self.database = bench.database

    def session(self, url: str) -> Session:
        return PostgresqlSession(url)

    def tidy(self, url: str) -> None:
        tidy(url)


class Mariadb:
    name, unit = "MariaDB", "rows read"

    def __init__(self, bench: mariadb.Bench) -> None:
        self._bench = bench

    @contextmanager
    def database(self) -> Iterator[str]:
        with self._bench.database() as url:
            with Queue(url) as queue:
                queue.install()
            yield url

    def session(self, url: str) -> Session:
        return MariadbSession(url)

    def tidy(self, url: str) -> None:
        pass


class Sqlite:
    name, unit = "SQLite", "steps"

    @contextmanager
    def database(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder)}/jobs.db?synchronous=normal"
            with Queue(url) as queue:
                queue.install()
            yield url

    def session(self, url: str) -> Session:
        return SqliteSession(url)

    def tidy(self, url: str) -> None:
        pass


def fill(queue: Queue, kinds: Sequence[str], count: int, channels: int) -> None:
    """``count`` messages of each kind, in batches of one kind in turn."""

    def message(number: int, kind: str) -> NewMessage:
        return NewMessage(PAYLOAD, channel=f"c{number % channels}", kind=kind)

    for start in range(0, count, _CHUNK):
        numbers = range(start, min(start + _CHUNK, count))
        for kind in kinds:
            queue.publish_many([message(n, kind) for n in numbers])


def by_kind(queue: Queue) -> None:
    """The queue is claimed by kind from now on, and all is found so."""
    for _ in range(5):
        queue.claim(kinds=[RED])


def drain(side: Side, url: str, kinds: tuple[str, ...] | None, count: int) -> float:
    """The cost of a message; each was there at the first look."""
    with closing(side.session(url)) as session:
        left = count
        while left:
            taken = session.claim(kinds)
            assert taken.rows, f"{left} messages were not found"
            assert kinds is None or {row[4] for row in taken.rows} <= set(kinds)
            session.complete(taken)
            left -= len(taken.rows)
        return session.cost / count


def measure(side: Side, size: Size) -> Table:
    table = Table(
        f"{side.name}: claims of one kind, {size.messages} messages of it",
        ("case", "channels", f"{side.unit} a message", "to unfiltered"),
    )
    for channels in size.channels:
        say(f"{side.name}, {channels} channels")
        with side.database() as url, Queue(url, upkeep_every=None) as queue:
            fill(queue, (RED, BLUE), size.messages, channels)
            side.tidy(url)
            plain = drain(side, url, None, 2 * size.messages)
        table.add("unfiltered", channels, round(plain, 2), 1.0)
        with side.database() as url, Queue(url, upkeep_every=None) as queue:
            by_kind(queue)
            fill(queue, (RED, BLUE), size.messages, channels)
            side.tidy(url)
            _, start = queue.history_since()
            both = sum(drain(side, url, (kind,), size.messages) for kind in (RED, BLUE)) / 2
            only_completed(queue, start, 2 * size.messages)
        table.add("two kinds, a worker each", channels, round(both, 2), round(both / plain, 2))
        with side.database() as url, Queue(url, upkeep_every=None) as queue:
            by_kind(queue)
            fill(queue, (BLUE,), size.front, channels)
            fill(queue, (RED,), size.messages, channels)
            side.tidy(url)
            behind = drain(side, url, (RED,), size.messages)
        name = f"{size.front} of the other in front"
        table.add(name, channels, round(behind, 2), round(behind / plain, 2))
    return table


def only_completed(queue: Queue, position: str | None, count: int) -> None:
    """So many were completed since then, and nothing else happened: none was given back."""
    seen: Counter[str] = Counter()
    while True:
        entries, position = queue.history_since(position)
        if not entries:
            break
        seen.update(entry.outcome for entry in entries)
    assert seen == {"completed": count}, seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=("postgresql", "mariadb", "sqlite"))
    options = parser.parse_args()
    size = Size(1000, 10_000) if options.quick else Size()
    with ExitStack() as stack:
        sides: list[Side] = []
        if options.only in (None, "postgresql"):
            sides.append(Postgresql(stack.enter_context(running())))
        if options.only in (None, "mariadb") and find_mariadb() is not None:
            server = stack.enter_context(EmbeddedMariaDB(settings=mariadb.SETTINGS))
            sides.append(Mariadb(mariadb.Bench(server)))
        if options.only in (None, "sqlite"):
            sides.append(Sqlite())
        show([measure(side, size) for side in sides], as_json=options.json)


if __name__ == "__main__":
    main()
