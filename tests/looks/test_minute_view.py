"""minute_v1 and depths by kind: the same on every database."""

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from laneway import NewMessage, Queue
from laneway.drivers.sqlite.url import connect, read_url
from tests.model.mysql import connect as connect_mysql
from tests.stores import STORES, Databases

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
_COLUMNS = "queue, kind, published, started, completed, failed, dead, depth, exact, waits, runs, at"


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def _rows(name: str, url: str) -> list[tuple[Any, ...]]:
    """The view, with times and lists as Python has them."""
    sql = f"select {_COLUMNS} from {{}} where published > 0 order by kind"  # noqa: S608
    if name == "SQLite":
        with closing(connect(read_url(url))) as file:
            rows = file.execute(sql.format("laneway_minute_v1")).fetchall()
        return [(*row[:-1], datetime.fromtimestamp(row[-1] / 1e6, UTC)) for row in rows]
    if name == "MariaDB":
        with closing(connect_mysql(url)) as connection:
            cursor = connection.cursor()
            cursor.execute(sql.format("laneway_minute_v1"))
            return [(*row[:-1], row[-1].replace(tzinfo=UTC)) for row in cursor.fetchall()]
    with psycopg.connect(url) as server:
        return server.execute(sql.format("laneway.minute_v1")).fetchall()


def _list(value: Any) -> list[int]:
    found: list[int] = json.loads(value) if isinstance(value, str) else value
    return found


@pytest.mark.parametrize("name", ["PostgreSQL 18", "MariaDB", "SQLite"])
def test_minutes_by_kind_are_in_the_view(name: str, request: pytest.FixtureRequest) -> None:
    databases: Databases = request.getfixturevalue(STORES[name].fixture)
    url, clock = databases.create_database("minute view"), Clock()
    with Queue(url, upkeep_every=None, clock=clock) as queue:
        queue.install()
        mails = [NewMessage(n, channel="a", kind="mail") for n in range(5)]
        queue.publish_many([*mails, *(NewMessage(n, channel="b", kind="bill") for n in range(3))])
        taken = {message.kind: message for message in queue.claim(8, lease=3600)}
        taken["mail"].complete()
        taken["bill"].fail("no")
        for _ in range(9):
            queue.upkeep()
            clock.now += MINUTE / 3
        found = queue.minutes(since=NOON, until=clock.now, by="kind")
    assert {(m.kind, m.depth) for m in found if m.published} == {("mail", 4), ("bill", 2)}
    assert {m.depth for m in found if m.kind == "bill"} == {2}, "it is noted when nothing happens"
    first = _rows(name, url)
    assert [(*row[:8], bool(row[8]), row[-1]) for row in first] == [
        ("default", "bill", 3, 1, 0, 1, 1, 2, True, NOON),
        ("default", "mail", 5, 1, 1, 0, 0, 4, True, NOON),
    ]
    for row in first:
        assert [sum(_list(times)) for times in row[9:11]] == [1, 1]
        assert len(_list(row[9])) == 13
