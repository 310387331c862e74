"""What was done, written down in the transaction that completes it, on either database."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from laneway.drivers.sqlite.url import read_url

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
        self.is_sqlite = url.startswith("sqlite")
        self._prefix = "laneway_" if self.is_sqlite else "laneway."
        if self.is_sqlite:
            path = read_url(url).path
            self.connection: Any = sqlite3.connect(path, isolation_level=None, timeout=30)
        else:
            self.connection = psycopg.connect(url, autocommit=True)

    def create(self) -> None:
        self.connection.execute("create table ledger (node bigint primary key, early boolean)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("begin immediate" if self.is_sqlite else "begin")
        try:
            yield
        except BaseException:
            self.connection.execute("rollback")
            raise
        self.connection.execute("commit")

    def note(self, node: int) -> None:
        early = _EARLY.format(p=self._prefix, id=int(node))
        self.connection.execute(f"insert into ledger (node, early) select {int(node)}, {early}")

    def dead(self) -> list[int]:
        rows = self.connection.execute(_DEAD.format(p=self._prefix)).fetchall()
        return [row[0] for row in rows]

    def wrong(self) -> list[Any]:
        """Nodes that completed and are not in the ledger or the other way round, that were begun
        too early or never ended."""
        return list(self.connection.execute(_WRONG.format(p=self._prefix)).fetchall())

    def close(self) -> None:
        self.connection.close()
