"""Ids of held nodes come from the counter of messages, many by one row: nobody else gets one."""

from typing import Any

import pytest
from pymysql import MySQLError

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.engines.mysql import MysqlEngine, render
from laneway.engines.mysql.base import joined
from laneway.errors import DatabaseFailed
from tests.model.mysql import connect

NODES = 25


def _publish_flow(queue: Queue, connection: Any) -> list[int]:
    with queue.flow("ids", connection=connection) as flow:
        first = flow.add(0)
        nodes = [first, *(flow.add(n, after=first) for n in range(NODES))]
    return [node.id or 0 for node in nodes]


@pytest.mark.parametrize("step", [1, 3])
def test_nobody_else_gets_them_while_and_after_a_flow_is_published(
    queue: Queue, url: str, step: int
) -> None:
    connection = connect(url)
    with connection.cursor() as cursor:
        cursor.execute(f"set session auto_increment_increment = {step}, auto_increment_offset = 1")
    others = [queue.publish("before").id]
    ids = _publish_flow(queue, connection)
    others += [queue.publish("meanwhile").id for _ in range(3 * NODES)]
    connection.commit()
    connection.close()
    others += [queue.publish("after").id for _ in range(3 * NODES)]
    assert len({*ids, *others}) == len(ids) + len(others)
    assert {id % step for id in ids} == {1 % step}
    done = 0
    while claimed := queue.claim(100):
        queue.complete(claimed)
        done += len(claimed)
    assert done == len(ids) + len(others)


def test_they_are_taken_at_once(queue: Queue, url: str) -> None:
    """Others publish after each statement."""
    connection, others = connect(url), set[int | None]()
    plan = MysqlEngine().flows._new_ids(NODES, 1)
    statement, ids = next(plan), list[int]()
    with connection.cursor() as cursor:
        while not ids:
            cursor.execute(statement.sql, statement.params)
            others |= {queue.publish("meanwhile").id for _ in range(NODES)}
            try:
                statement = plan.send([(cursor.lastrowid,)])
            except StopIteration as end:
                ids = end.value
    connection.commit()
    connection.close()
    assert len(set(ids)) == NODES
    assert not others & set(ids)


def test_a_server_that_was_killed_gives_none_of_them_out_again() -> None:
    with EmbeddedMariaDB() as server:
        url = server.create_database("ids")
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
            connection = connect(url)
            ids = _publish_flow(queue, connection)
            connection.commit()
            server.kill()
            server.start()
            others = [queue.publish("after").id for _ in range(3 * NODES)]
            assert not {*ids} & {*others}


def test_where_the_step_cannot_be_set_no_ids_are_taken(queue: Queue, url: str) -> None:
    """As MySQL does that ignores a hint: they would not be ours."""
    sql, params, *_ = render.statement("take_ids", "laneway", [[NODES]])
    connection = connect(url)
    with connection.cursor() as cursor, pytest.raises(MySQLError, match="cannot be null"):
        cursor.execute(sql[sql.index("insert") :], params or None)
    connection.close()


def test_a_callers_session_that_cuts_long_texts_releases_all(queue: Queue, url: str) -> None:
    connection = connect(url)
    _publish_flow(queue, connection)
    connection.commit()
    with connection.cursor() as cursor:
        cursor.execute("set session group_concat_max_len = 64")
    queue.complete(queue.claim(1), connection=connection)
    connection.commit()
    connection.close()
    assert len(queue.claim(100)) == NODES


def test_a_text_that_was_cut_is_an_error() -> None:
    assert joined(2, b"1,a;2,b;") == ["1,a", "2,b"]
    assert joined(0, None) == []
    for cut in ("1,a;", "1,a;2", "1,a;2,b"):
        with pytest.raises(DatabaseFailed, match="group_concat_max_len"):
            joined(2, cut)
