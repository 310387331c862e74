"""The model's store on PostgreSQL."""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import psycopg

from laneway import Queue
from tests.interleavings.invariants import violations

TABLES = (
    "message, wake, token, lease, stray, channel, dedupe, dead, dead_count, dead_total, history, "
    "kind_queue, flow, flow_count, flow_node, flow_edge, flow_held, shared_limit, limit_lease, "
    "limit_lane, limit_wait, limit_queue, limit_clock"
)


class PostgresqlTransaction:
    def __init__(self, url: str) -> None:
        self.connection: psycopg.Connection[Any] = psycopg.connect(url)

    def commit(self) -> None:
        self.connection.commit()

    def close(self) -> None:
        self.connection.rollback()
        self.connection.close()


class PostgresqlStore:
    open_transactions = True
    in_order_within = math.inf

    def __init__(self, url: str) -> None:
        self.url, self.schema = url, "laneway model"
        self.first = Queue(url, schema=self.schema, pool_size=4)
        self.first.install()
        self.eyes = psycopg.connect(url, autocommit=True)
        self.eyes.execute("select set_config('search_path', quote_ident(%s), false)", [self.schema])

    def reset(self) -> None:
        self.eyes.execute(f"truncate {TABLES}".encode())

    def begin(self) -> PostgresqlTransaction:
        return PostgresqlTransaction(self.url)

    def unread(self, now: datetime) -> int:
        """Wakes that the next claim could read."""
        row = self.eyes.execute("select count(*) from wake where at <= %s", [now]).fetchone()
        assert row
        return int(row[0])

    def violations(self, published: Iterable[int]) -> list[str]:
        return violations(self.eyes, published, self.schema)

    def close(self) -> None:
        self.first.close()
        self.eyes.close()
