"""What single calls cost the server: buffers and WAL of one session."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import RawCursor
from psycopg.types.array import ListBinaryDumper

from laneway.plan import Row, Statement


class Use(NamedTuple):
    """Shared buffers touched (hit or read), WAL bytes."""

    buffers: float
    wal: float

    def __sub__(self, other: "Use") -> "Use":
        return Use(self.buffers - other.buffers, self.wal - other.wal)


class Meter:
    """A session that knows what each of its statements used.

    PostgreSQL 18 counts by session what EXPLAIN (ANALYZE, BUFFERS, WAL) would show, so that the
    statements can be the library's own, with their answers.
    """

    _READ = """
        select
            (select coalesce(sum(hits), 0) + coalesce(sum(read_bytes), 0) / 8192
                from pg_stat_get_backend_io(pg_backend_pid()) where object = 'relation'),
            (select wal_bytes from pg_stat_get_backend_wal(pg_backend_pid()))"""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.adapters.register_dumper(list, ListBinaryDumper)
        self.used = Use(0, 0)
        for _ in range(10):
            before = self._total()
            self._own = self._total() - before  # what reading the counters costs itself

    def execute(self, statement: Statement) -> Sequence[Row]:
        """Runs one statement of a plan; ``used`` says what it cost."""
        before = self._total()
        cursor = RawCursor[Any](self.connection)
        cursor.execute(statement.sql.encode(), statement.params, binary=True)
        rows = cursor.fetchall()
        self.used = self._total() - before - self._own
        return rows

    def close(self) -> None:
        self.connection.close()

    def _total(self) -> Use:
        self.connection.execute("select pg_stat_force_next_flush()")
        row = self.connection.execute(self._READ).fetchone()
        assert row is not None
        return Use(float(row[0]), float(row[1]))
