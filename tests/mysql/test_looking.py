"""Connections that only look: the server ends what takes too long."""

import time
from contextlib import closing

import pymysql
import pytest

from benchmarks import looks_mariadb
from laneway import Queue
from laneway.client.shared.options import looking_url
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.drivers.mysql.url import connect_options
from laneway.engines.mysql.engine import MysqlEngine
from laneway.errors import InvalidOption


def test_a_long_look_is_ended(mariadb: EmbeddedMariaDB) -> None:
    plain = mariadb.create_database("looking")
    options = connect_options(looking_url(plain, False, 0.2))
    with pymysql.connect(database="looking", **options) as connection:
        cursor = connection.cursor()
        begin = time.monotonic()
        with pytest.raises(pymysql.OperationalError) as error:
            cursor.execute(
                "with recursive n as (select 1 as i union all select i + 1 from n where i < 900) "
                "select sum(a.i * b.i * c.i * d.i) from n a, n b, n c, n d"
            )
        assert error.value.args[0] in (1969, 3024)  # MariaDB, MySQL
        assert time.monotonic() - begin < 10
    with Queue(plain) as queue:
        queue.install()
    with Queue(looking_url(plain, False, 30)) as queue:
        assert queue.stats() == []


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_a_timeout_is_a_number_of_seconds(value: str) -> None:
    with pytest.raises(InvalidOption, match="number of seconds"):
        connect_options(f"mysql://h/d?statement_timeout={value}")


def test_doctor_reads_the_same_however_many_channels_wait(mariadb: EmbeddedMariaDB) -> None:
    rows = []
    for channels in (2_000, 6_000):
        url = mariadb.create_database(f"doctor{channels}")
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
        looks_mariadb.fill(url, looks_mariadb.Waiting(channels, channels, 500, 500, 1))
        watched = looks_mariadb.Watched(url, mariadb.pid)
        with closing(watched.connection):
            watched.run(MysqlEngine().maintenance.diagnose())
            rows.append(watched.rows)
    assert rows[1] < 1.1 * rows[0], rows
