"""Spark into and out of the queue, against Spark's own JDBC: `python -m benchmarks.spark_jdbc`.

Both sides write the same frame. JDBC writes, not atomically, into the bare table that the other
benchmarks claim from (a key and an index, no wakes, no limits), and into a table without any index,
from which nobody could claim. Before each measured run, of either side, all tables that are written
to are emptied and a checkpoint is made. So no side pays for what runs before it have left: rows,
pages that are not written yet, a vacuum, which the server begins once a minute on whatever has
grown. The PostgreSQL driver's jar is Debian's libpostgresql-jdbc-java: fetched if it is not
installed. Compare inside one run only.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import DataFrame, SparkSession

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.spark import session

from .report import Table, show

_INSTALLED = Path("/usr/share/java/postgresql.jar")
_PACKAGE = "libpostgresql-jdbc-java"
_CACHE = Path(".cache/jdbc")
_PAYLOAD = 200
BARE = Path(__file__).parent / "bare.sql"
_HISTORY = """
insert into laneway.history (
    xid, message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
    payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select 1 + n / 100, n, n, 1, now(), now(), now(), now(), now(), 200, true, false, 0,
    'default', 'tenant-' || n %% 100, 'send_receipt', 'host:4711:8a6b', 'completed'
from generate_series(1, %s) n
"""


def measure(
    spark: SparkSession, url: str, rows: int, history: int, rounds: int, only: str | None
) -> list[Table]:
    """Warm: each side runs once before it is measured, then they take turns."""
    table = Table("Spark", ["what", "rows", "ours rows/s", "other rows/s", "ratio"])
    _fill(url, history)
    sides: dict[str, tuple[int, Callable[[], None], Callable[[], None]]] = {
        "read": (history, lambda: _read(spark, url), lambda: _read_jdbc(spark, url, history)),
        "publish; JDBC into a bare queue": (
            rows,
            lambda: _publish(_frame(spark, rows).select("channel", "payload"), url),
            lambda: _write_jdbc(_frame(spark, rows).select("channel", "payload"), url, "job"),
        ),
        "publish; JDBC into a heap": (
            rows,
            lambda: _publish(_frame(spark, rows), url),
            lambda: _write_jdbc(_frame(spark, rows), url, "heap"),
        ),
        "publish in 256 partitions; ours in 4": (
            rows,
            lambda: _publish(_frame(spark, rows, 256), url),
            lambda: _publish(_frame(spark, rows), url),
        ),
        "publish with keys; ours without": (
            rows,
            lambda: _publish(_with_keys(_frame(spark, rows)), url),
            lambda: _publish(_frame(spark, rows), url),
        ),
    }
    for what, (count, ours, theirs) in sides.items():
        if only is not None and not what.startswith(only):
            continue
        ours()
        theirs()
        pairs = [
            (count / _seconds(ours, url), count / _seconds(theirs, url)) for _ in range(rounds)
        ]
        mine, other = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
        ratio = round(median(a / b for a, b in pairs), 2)
        table.add(what, count, int(mine), int(other), ratio)
        print(f"{what}: {int(mine):,} against {int(other):,}", file=sys.stderr, flush=True)
    table.notes.append("ours is atomic, and can be claimed; JDBC commits batch by batch")
    return [table]


def _seconds(work: Callable[[], None], url: str) -> float:
    """With nothing published before it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "truncate laneway.message, laneway.wake, laneway.dedupe, laneway.staged_count, job,"
            " heap"
        )
        connection.execute("checkpoint")
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _fill(url: str, rows: int) -> None:
    with Queue(url) as queue:
        queue.install()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_HISTORY, [rows])
        connection.execute("vacuum analyze laneway.history")
        connection.execute(BARE.read_bytes())
        connection.execute(
            "create table heap"
            " (payload bytea, queue text, channel text, kind text, priority smallint)"
        )


def _consume(frame: DataFrame) -> None:
    """Reads every row and column, and keeps nothing."""
    frame.write.format("noop").mode("overwrite").save()


def _read(spark: SparkSession, url: str) -> None:
    _consume(spark.read.format("laneway").option("url", url).load())


def _read_jdbc(spark: SparkSession, url: str, rows: int) -> None:
    bounds = {"lowerBound": "1", "upperBound": str(rows), "numPartitions": "4"}
    reader = spark.read.format("jdbc").options(**_jdbc(url, "laneway.history_v1"), **bounds)
    _consume(reader.option("partitionColumn", "message_id").option("fetchsize", "10000").load())


def _frame(spark: SparkSession, rows: int, partitions: int = 4) -> DataFrame:
    return spark.range(0, rows, 1, partitions).selectExpr(
        f"cast(repeat('x', {_PAYLOAD}) as binary) as payload",
        "'default' as queue",
        "concat('tenant-', id % 100) as channel",
        "'send_receipt' as kind",
        "cast(0 as smallint) as priority",
    )


def _with_keys(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(
        "*", f"concat(monotonically_increasing_id(), '-{time.time_ns()}') as key"
    )


def _publish(frame: DataFrame, url: str) -> None:
    frame.write.format("laneway").option("url", url).mode("append").save()


def _write_jdbc(frame: DataFrame, url: str, table: str) -> None:
    writer = frame.write.format("jdbc").options(**_jdbc(url, table))
    writer.option("batchsize", "10000").mode("append").save()


def _jdbc(url: str, table: str) -> dict[str, str]:
    parts = conninfo_to_dict(url)
    address = f"jdbc:postgresql://{parts['host']}:{parts['port']}/{parts['dbname']}"
    return {
        "url": f"{address}?reWriteBatchedInserts=true",
        "user": str(parts["user"]),
        "driver": "org.postgresql.Driver",
        "dbtable": table,
    }


def _jar() -> Path:
    """The one that is installed, or fetched into .cache without installing it."""
    if _INSTALLED.exists():
        return _INSTALLED
    for found in _CACHE.rglob("postgresql*.jar"):
        return found.resolve()
    _CACHE.mkdir(parents=True, exist_ok=True)
    print(f"fetching {_PACKAGE} into {_CACHE} ...", flush=True)
    subprocess.run(["apt-get", "download", "-qq", _PACKAGE], cwd=_CACHE, check=True)
    (package,) = _CACHE.glob(f"{_PACKAGE}*.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(_CACHE)], check=True)
    return next(_CACHE.rglob("postgresql.jar")).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="published")
    parser.add_argument("--history", type=int, help="read; twice as many by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="read, publish, or the begin of a line's name")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    settings = {"spark.driver.extraClassPath": str(_jar())}
    spark = session("bench", master="local[2]", settings=settings)
    with EmbeddedPostgres(version=18) as server:
        url = server.create_database("bench")
        history = chosen.history or 2 * chosen.rows
        tables = measure(spark, url, chosen.rows, history, chosen.rounds, chosen.only)
    spark.stop()
    show(tables, as_json=chosen.json)


if __name__ == "__main__":
    main()
