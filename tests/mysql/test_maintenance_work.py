"""What maintenance reads grows with what it deletes, not with its square."""

from contextlib import closing

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.drivers.mysql.sync import _execute
from laneway.drivers.runner import drive
from laneway.engines.mysql import MysqlEngine
from tests.model.mysql import connect


def _rows_read(url: str, idle: int) -> int:
    """By a run of upkeep that forgets so many sets of limits that nothing waits for."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        rows = [("q", f"limit {number}") for number in range(idle)]
        cursor.executemany("insert into laneway_limit_queue (queue, limits) values (%s, %s)", rows)
        connection.commit()
        cursor.execute("flush status")
        drive(MysqlEngine().upkeep(), lambda statement: _execute(connection, statement))
        cursor.execute("show session status like 'Handler_read%'")
        read = sum(int(value) for _, value in cursor.fetchall())
        connection.commit()
        cursor.execute("select count(*) from laneway_limit_queue")
        assert cursor.fetchone() == (0,)
        return read


def test_idle_sets_of_limits_are_forgotten_one_by_one(mariadb: EmbeddedMariaDB) -> None:
    url = mariadb.create_database("maintenance work")
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        queue.upkeep()
    few, many = _rows_read(url, 100), _rows_read(url, 400)
    assert many < 5 * few + 200, f"{few} rows for 100 sets, {many} for 400"
