"""What the server holds: sizes, dead rows, what waits."""

from typing import NamedTuple

import psycopg

from .terms import QUEUE

# The history grows by design, a day at a time; all else must not.
SIZES = """
select coalesce(sum(pg_table_size(c.oid)) filter (where c.relname !~ '^history'), 0),
    coalesce(sum(pg_indexes_size(c.oid)) filter (where c.relname !~ '^history'), 0),
    coalesce(sum(pg_total_relation_size(c.oid)) filter (where c.relname ~ '^history'), 0)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'laneway' and c.relkind = 'r'
"""
DEAD = """
select coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables where schemaname = 'laneway'
"""
WAITING = "select count(*) from laneway.message where queue = %s"
ENDED = """
select count(*), count(distinct message_id) from laneway.history_v1
where queue = %s and outcome = 'completed'
"""
DEAD_LETTERS = "select count(*) from laneway.dead where queue = %s"
OLD = """
select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
where c.relname ~ '^history_[0-9]{8}$'
    and to_date(right(c.relname, 8), 'YYYYMMDD') < (now() at time zone 'UTC')::date - 1
"""


class HeldLease(NamedTuple):
    """Bytes, bytes, bytes and rows."""

    tables: int
    indexes: int
    history: int
    dead_rows: int


class Account(NamedTuple):
    """At the end: what was completed, how many different ones, what is left, what was given up."""

    completed: int
    different: int
    waiting: int
    dead: int


class Server:
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def held(self) -> HeldLease:
        sizes = self._row(SIZES)
        return HeldLease(*(int(size) for size in (*sizes, *self._row(DEAD))))

    def waiting(self) -> int:
        return int(self._row(WAITING, QUEUE)[0])

    def account(self) -> Account:
        completed, different = self._row(ENDED, QUEUE)
        return Account(completed, different, self.waiting(), self._row(DEAD_LETTERS, QUEUE)[0])

    def old_days(self) -> int:
        """Partitions of the history that the retention has done with."""
        return int(self._row(OLD)[0])

    def close(self) -> None:
        self._connection.close()

    def _row(self, text: str, *params: object) -> tuple[int, ...]:
        row = self._connection.execute(text.encode(), params or None).fetchone()
        assert row is not None
        return row


class Snapshot:
    """Somebody's long report: a transaction that has read, and stays open."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None

    def hold(self, wanted: bool) -> bool:
        if wanted and self._connection is None:
            self._connection = psycopg.connect(self._url, autocommit=True)
            self._connection.execute("begin isolation level repeatable read")
            self._connection.execute("select count(*) from laneway.setting")
        elif not wanted and self._connection is not None:
            self._connection.close()
            self._connection = None
        return self._connection is not None
