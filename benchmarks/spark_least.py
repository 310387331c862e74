"""What a publish that is all or nothing costs at the least: the same rows, ready in every column,
into a table like the queue's by one statement. No wakes, no checks, nothing of Spark."""

import time

import psycopg
from psycopg import sql

from .report import Table

_READY = """
create unlogged table laneway.ready (like laneway.message including defaults);
insert into laneway.ready (
    id, channel_id, due, published_at, first_published_at, max_attempts, priority, queue, channel,
    kind, content_type, payload)
select n, laneway.channel_id_v1('default', c.name), now(), now(), now(), 20, 0, 'default', c.name,
    'send_receipt', 'application/octet-stream', convert_to(repeat('x', 200), 'UTF8')
from generate_series(1, {rows}) n cross join lateral (select 'tenant-' || (n / 100) % 100) c(name)
"""
_TABLE = "create table laneway.likeness (like laneway.message including defaults)"
_KEY = "alter table laneway.likeness add primary key (id)"
_ORDER = "create index on laneway.likeness (channel_id, priority, due, id)"
_STEPS = {
    "a heap": [_TABLE],
    "with the key": [_TABLE, _KEY],
    "with the key and the order": [_TABLE, _KEY, _ORDER],
}


def measure_least(url: str, rows: int) -> Table:
    table = Table("The least that one transaction costs", ["into", "rows", "rows/s"])
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _READY.split(";"):
            connection.execute(sql.SQL(statement).format(rows=rows))
        connection.execute("vacuum laneway.ready")
        for what, statements in _STEPS.items():
            for statement in statements:
                connection.execute(sql.SQL(statement))
            connection.execute("checkpoint")
            began = time.perf_counter()
            connection.execute("insert into laneway.likeness select * from laneway.ready")
            table.add(what, rows, int(rows / (time.perf_counter() - began)))
            connection.execute("drop table laneway.likeness")
        connection.execute("drop table laneway.ready")
    return table
