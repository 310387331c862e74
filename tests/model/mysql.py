"""The model's store on MySQL and MariaDB."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pymysql

from laneway import Queue
from laneway.drivers.mysql.url import connect_options, database_of
from tests.mysql.invariants import violations

_COUNTED = ["dead_count", "dead_sum", "dead_queue", "gap", "kind_count", "minute"]
TABLES = [
    *["message", "wake", "lease", "stray", "channel", "dedupe", "dead", "history", "expiry"],
    *["kind_queue", "kind_message", "kind_wake", "lane"],
    *["flow", "flow_name", "flow_count", "flow_node", "flow_edge", "flow_held", "flow_added"],
    *["flow_released", "flow_undecided"],
    *["shared_limit", "limit_lease", "limit_lane", "limit_wait", "limit_queue", "limit_clock"],
    *_COUNTED,
]


def connect(url: str, **options: Any) -> "pymysql.Connection[Any]":
    return pymysql.connect(database=database_of(url), **(connect_options(url) | options))


class MysqlTransaction:
    """At the server's default isolation, as most callers have it."""

    def __init__(self, url: str) -> None:
        self.connection = connect(url)

    def commit(self) -> None:
        self.connection.commit()

    def close(self) -> None:
        self.connection.rollback()
        self.connection.close()


class MysqlStore:
    open_transactions = True
    in_order_within = 58.0  # a minute, minus the age that a scan may have

    def __init__(self, url: str) -> None:
        self.url, self.schema = url, "laneway model"
        self.first = Queue(url, schema=self.schema, pool_size=4)
        self.first.install()
        self.observer = connect(url, autocommit=True)

    def reset(self) -> None:
        with self.observer.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"delete from `{self.schema}_{table}`")  # noqa: S608
            cursor.execute(f"update `{self.schema}_turnstile` set by_kind = 0")  # noqa: S608

    def begin(self) -> MysqlTransaction:
        return MysqlTransaction(self.url)

    def unread(self, now: datetime) -> int:
        """Nothing is left unread: serving a channel reads all its wakes."""
        return 0

    def violations(self, published: Iterable[int]) -> list[str]:
        return violations(self.observer, self.schema, published)

    def close(self) -> None:
        self.first.close()
        self.observer.close()
