"""What was done, written down in the transaction that completes it, on every database."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pymysql

from laneway.drivers.mysql.url import connect_options, database_of
from laneway.drivers.sqlite.url import read_url
from tests.flows.sound import flow_violations
from tests.interleavings.invariants import violations

# Begun too early: a parent is not decided. Read before the ledger's own row is there.
_EARLY = """
exists (
    select 1 from {p}flow_edge e join {p}flow_node p on p.id = e.parent
    where e.child = {id} and case when e.strict then p.state <> 'completed'
        else p.state in ('held', 'live', 'dead') and not p.died end)
"""
_DEAD = "select id from {p}dead"
_WRONG = """
select n.id, n.state from {p}flow_node n
where (n.state = 'completed') <> exists (select 1 from ledger l where l.node = n.id)
union all
select l.node, 'in no flow' from ledger l
where not exists (select 1 from {p}flow_node n where n.id = l.node)
union all
select n.id, n.state from {p}flow_node n where n.state in ('held', 'live', 'dead')
union all
select l.node, 'too early' from ledger l where l.early
union all
select h.id, 'held for ever' from {p}flow_held h
"""


class Ledger:
    """A connection of its own."""

    def __init__(self, url: str) -> None:
        self.dialect = url.partition(":")[0]
        self._prefix = "laneway." if self.dialect == "postgresql" else "laneway_"
        self.connection: Any
        if self.dialect == "sqlite":
            path = read_url(url).path
            self.connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        elif self.dialect == "mysql":
            # At the server's default isolation, as most callers have it.
            options = connect_options(url)
            self.connection = pymysql.connect(
                database=database_of(url), **(options | {"autocommit": True})
            )
        else:
            self.connection = psycopg.connect(url, autocommit=True)

    def _execute(self, query: str) -> list[Any]:
        if self.dialect == "mysql":
            with self.connection.cursor() as cursor:
                cursor.execute(query)
                return list(cursor.fetchall())
        found = self.connection.execute(query)
        return list(found.fetchall()) if found.description else []

    def create(self) -> None:
        self._execute("create table ledger (node bigint primary key, early boolean)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._execute("begin immediate" if self.dialect == "sqlite" else "begin")
        try:
            yield
        except BaseException:
            self._execute("rollback")
            raise
        self._execute("commit")

    def note(self, nodes: Iterable[int]) -> None:
        """In order: two that note the same nodes, of which one has lost them, wait in no circle."""
        listed = ", ".join(str(int(node)) for node in sorted(nodes))
        early = _EARLY.format(p=self._prefix, id="n.id")
        # Two statements: MySQL would lock what an insert reads.
        query = f"select n.id, {early} from {self._prefix}flow_node n where n.id in ({listed})"  # noqa: S608
        rows = sorted(self._execute(f"{query} order by n.id"))
        values = ", ".join(f"({int(node)}, {bool(soon)})" for node, soon in rows)
        self._execute(f"insert into ledger (node, early) values {values}")  # noqa: S608

    def dead(self) -> list[int]:
        return [row[0] for row in self._execute(_DEAD.format(p=self._prefix))]

    def nodes(self) -> int:
        return int(self._execute(f"select count(*) from {self._prefix}flow_node")[0][0])  # noqa: S608

    def wrong(self) -> list[Any]:
        """Nodes that completed and are not in the ledger or the other way round, that were begun
        too early or never ended; and what else must hold of flows."""
        wrong = self._execute(_WRONG.format(p=self._prefix))
        if self.dialect == "postgresql":
            return [*wrong, *violations(self.connection)]
        return [*wrong, *flow_violations(self._columns, self.dialect)]

    def _columns(self, columns: str, table: str) -> list[Any]:
        return self._execute(f"select {columns} from {self._prefix}{table}")  # noqa: S608

    def close(self) -> None:
        self.connection.close()
