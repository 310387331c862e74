"""The same on MariaDB. Its counters are in its log; those of a replica follow the rows."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from itertools import combinations
from typing import Any

import pymysql
import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB, Setting
from laneway.plan import Taken

pytestmark = pytest.mark.xdist_group("mariadb")

# What is committed without waiting for the disk stays in memory, for as long as the test runs.
FORGETFUL: dict[str, Setting] = {
    "innodb_flush_log_at_trx_commit": 0,
    "innodb_flush_log_at_timeout": 2700,
}
LEASE = timedelta(hours=1)
MANY = 20


def _claim(queue: Queue, limit: int) -> Taken:
    return queue.database.run(queue.database.engine.claims.claim(("default",), limit, LEASE, "w"))


def _draw(queue: Queue) -> tuple[list[int], list[int]]:
    ids = [queue.publish({"n": n}).id or 0 for n in range(MANY)]
    return ids, [int(_claim(queue, 1).rows[0][1]) for _ in range(MANY)]


def _known(queue: Queue) -> set[int]:
    return {message.id for message in queue.messages(limit=1000)}


def _ask(server: EmbeddedMariaDB, text: str) -> Sequence[Any]:
    connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall()


def _check_distinct(drawn: Sequence[tuple[list[int], list[int]]]) -> None:
    for (ids, fences), (other_ids, other_fences) in combinations(drawn, 2):
        assert not set(ids) & set(other_ids)
        assert not set(fences) & set(other_fences)
        assert max(fences) < min(other_fences)


def test_numbers_after_crashes() -> None:
    with (
        EmbeddedMariaDB(settings=FORGETFUL) as server,
        closing(Queue(server.create_database("lives"))) as queue,
    ):
        queue.install()
        _draw(queue)
        server.restart()  # what came before is on the disk
        drawn, lost = [], 0
        for _ in range(3):
            drawn.append(_draw(queue))
            server.kill()
            server.start()
            lost += len(set(drawn[-1][0]) - _known(queue))
        drawn.append(_draw(queue))
    assert lost > 0  # else it is no test
    _check_distinct(drawn)


@contextmanager
def _primary_and_replicas() -> Iterator[list[EmbeddedMariaDB]]:
    with ExitStack() as stack:
        servers = []
        for number in range(3):
            server = EmbeddedMariaDB()
            del server.settings["skip-log-bin"]
            server.settings |= {"log-bin": "changes", "server-id": number + 1}
            servers.append(stack.enter_context(server))
        for replica in servers[1:]:
            _ask(
                replica,
                "change master to master_host = '127.0.0.1', master_user = 'root', "
                f"master_port = {servers[0].port}, master_use_gtid = slave_pos",
            )
            _ask(replica, "start slave")
        yield servers


def _cut_off(primary: EmbeddedMariaDB, replicas: Sequence[EmbeddedMariaDB]) -> None:
    """They have everything, and get nothing from now on."""
    ((position,),) = _ask(primary, "select @@gtid_binlog_pos")
    for replica in replicas:
        ((reached,),) = _ask(replica, f"select master_gtid_wait('{position}', 60)")
        assert reached == 0
        _ask(replica, "stop slave")


def test_numbers_and_order_after_fail_overs() -> None:
    """Both replicas have stopped at the same place: the second one never heard of the first. And
    the claimer goes on with what it remembers of the first server."""
    with _primary_and_replicas() as servers:
        primary, *standbys = servers
        with ExitStack() as stack:
            queue = stack.enter_context(closing(Queue(primary.create_database("lives"))))
            queue.install()
            restored = [queue.publish(n).id for n in range(5)]
            _cut_off(primary, standbys)
            taken = _claim(queue, 5)
            assert [row[0] for row in taken.rows] == restored
            queue.database.run(
                queue.database.engine.leases.complete([row[:2] for row in taken.rows])
            )
            drawn = [_draw(queue)]
            for old, new in zip(servers, standbys, strict=False):
                old.kill()
                promoted = stack.enter_context(closing(Queue(new.url("lives"))))
                assert _known(promoted) == set(restored)
                younger = promoted.publish(6).id
                engine, promoted.database.engine = promoted.database.engine, queue.database.engine
                assert [row[0] for row in _claim(promoted, 10).rows] == [*restored, younger]
                promoted.database.engine = engine
                drawn.append(_draw(promoted))
    _check_distinct(drawn)


def test_a_life_that_begins_in_a_transaction_that_stays_open() -> None:
    """Nobody waits for it, and numbers go on when it is rolled back."""
    with EmbeddedMariaDB() as server, closing(Queue(server.create_database("lives"))) as queue:
        queue.install()
        connection = pymysql.connect(
            host="127.0.0.1", port=server.port, user="root", database="lives"
        )
        with connection:
            first = queue.publish(1, connection=connection).id or 0
            ids = [queue.publish(n).id or 0 for n in range(2)]
            late = queue.publish(2, connection=connection).id or 0
            connection.rollback()
            ids += [late, queue.publish(3).id or 0]
        assert first < ids[0] and ids == list(range(ids[0], ids[0] + 4))
        assert _known(queue) == {*ids[:2], ids[3]}


def test_a_clock_that_went_back() -> None:
    with EmbeddedMariaDB() as server, closing(Queue(server.create_database("lives"))) as queue:
        queue.install()
        _ask(server, "insert into lives.laneway_fence (id) values (3000000000000000)")
        ids = []
        for _ in range(2):
            ids.append(queue.publish(None).id or 0)
            server.restart()
        assert ids[0] >= 3_000_000_000_000_000 + 2**32
        assert ids[0] + 2**32 <= ids[1] < 2**53


def test_figures_by_minute_step_over_the_gap() -> None:
    with EmbeddedMariaDB() as server, closing(Queue(server.create_database("lives"))) as queue:
        queue.install()
        begun = queue.clock()
        for _ in range(2):
            for n in range(3):
                queue.publish(n)
            server.restart()
        for _ in range(3):
            queue.upkeep()
        minutes = queue.minutes(since=begun, until=queue.clock() + timedelta(minutes=1))
        assert sum(minute.published for minute in minutes) == 6
        queue.publish(0)
        assert 1 <= queue.totals().published < 100
