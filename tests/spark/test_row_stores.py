"""MySQL, MariaDB and SQLite: frames out of the queue and into it; streams are refused."""

import sqlite3
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, expr, lit

from laneway import NewMessage, Queue
from laneway.spark import reason
from laneway.spark.errors import JobIsOver
from laneway.spark.options import parse
from laneway.spark.publish import mysql_sqlite
from laneway.spark.publish.mysql_sqlite import MysqlSqliteWriter, staging_tables
from laneway.spark.store import connected_to_any
from tests.spark.streams import Sink
from tests.stores import STORES

_numbers = count(1)


_MARIADB = pytest.param("MariaDB", marks=pytest.mark.repeats("the same store on SQLite"))


@pytest.fixture(params=["SQLite", _MARIADB])
def url(request: pytest.FixtureRequest) -> str:
    databases = request.getfixturevalue(STORES[request.param].fixture)
    created: str = databases.create_database(f"spark rows {next(_numbers)}")
    with Queue(created) as queue:
        queue.install()
    return created


def load(spark: SparkSession, url: str, **more: Any) -> DataFrame:
    options = {"url": url, **{name: str(value) for name, value in more.items()}}
    return spark.read.format("laneway").options(**options).load()


def write(frame: DataFrame, url: str, **more: Any) -> None:
    writer = frame.write.format("laneway").option("url", url)
    writer.options(**{name: str(value) for name, value in more.items()}).mode("append").save()


def test_frames_out_of_the_queue(spark: SparkSession, url: str) -> None:
    """What a frame shows is what the library tells, in as many partitions as asked for."""
    with Queue(url) as queue:
        queue.publish_many(
            [
                NewMessage(b"\x00\xff", channel="ü", kind="k", priority=3, headers={"h": 1}),
                *(NewMessage({"n": n}, channel=f"c{n % 3}") for n in range(20)),
            ]
        )
        claimed = list(queue.claim(12))
        queue.complete(claimed[:7])
        queue.fail(claimed[7:10], "no such customer", error=ValueError("broken"))
        told = {info.id: info for info in queue.messages(limit=100)}
        ended = {e.message_id: e for m in claimed[:10] for e in queue.history(m.id)}
        letters = {letter.id: letter for letter in queue.dead_letters.list()}
    messages = load(spark, url, what="messages", rowsPerPartition=4)
    rows = {row.id: row for row in messages.collect()}
    assert messages.rdd.getNumPartitions() == 3 and len(rows) == 11 == len(told)
    for id, info in told.items():
        row = rows[id]
        assert (row.channel, row.kind, row.state, row.priority) == (
            *(info.channel, info.kind, info.state, info.priority),
        )
        assert row.published_at.replace(tzinfo=UTC) == info.published_at
    assert {row.headers for row in rows.values()} <= {None, '{"h":1}', '{"h": 1}'}
    history = {row.message_id: row for row in load(spark, url).collect()}
    assert history.keys() == ended.keys()
    for id, entry in ended.items():
        row = history[id]
        assert (row.outcome, row.reason, row.terminal, row.fence, row.xid) == (
            *(entry.outcome, entry.reason, entry.outcome == "completed", entry.fence, None),
        )
        assert row.ended_at.replace(tzinfo=UTC) == entry.ended_at
    dead = load(spark, url, what="dead_letters").where("error_type is not null").collect()
    assert {row.id: bytes(row.payload) for row in dead} == {
        id: letter.payload for id, letter in letters.items()
    }


def test_filters_and_select_lists(spark: SparkSession, url: str) -> None:
    with Queue(url) as queue:
        queue.publish_many([NewMessage(b"x", channel=f"c{n % 2}", kind=f"k{n}") for n in range(6)])
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    more = {"url": url, "what": "messages"}
    reader = spark.read.format("laneway").schema("kind string, id bigint")
    found = reader.options(**more, channel="c1").load()
    assert sorted(row.kind for row in found.collect()) == ["k1", "k3", "k5"]
    assert found.columns == ["kind", "id"]
    assert load(spark, **more, since=tomorrow.isoformat()).count() == 0
    assert load(spark, **more, until=tomorrow.isoformat(), kind="k2").count() == 1
    assert load(spark, **more, queue="elsewhere").count() == 0


def frame(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 3).select(
        concat(lit('{"n": '), col("id"), lit("}")).alias("payload"),
        concat(lit("c"), col("id") % 5).alias("channel"),
    )


def staged(url: str) -> list[str]:
    with connected_to_any(parse({"url": url}, "read").address) as store:
        return staging_tables(store)


def test_frames_into_the_queue(spark: SparkSession, url: str) -> None:
    """All of it, once per key, with every field; nothing of it if a channel is full."""
    for _ in range(2):
        write(frame(spark, 600), url, idempotency_key="monday", queue="q", kind="k")
    with Queue(url, name="q") as queue:
        claimed = list(queue.claim(601))
        assert sorted(message.json()["n"] for message in claimed) == list(range(600))
        assert {message.kind for message in claimed} == {"k"}
        queue.complete(claimed)
        queue.channel("c3").limit(backlog=5)
        with pytest.raises(PySparkException) as caught:
            write(frame(spark, 100), url, queue="q")
        assert "nothing of the job was published" in reason(caught.value)
        assert not queue.claim(1)
        odd = frame(spark, 1).select(
            lit(b"\x00\xff").alias("payload"),
            lit("c9").alias("channel"),
            lit("key").alias("key"),
            lit("channel").alias("key_scope"),
            lit('{"h": "ü"}').alias("headers"),
            lit(4).alias("priority"),
            expr("interval '1' hour").alias("expires_in"),
            expr("timestamp'2020-01-01 00:00:00'").alias("at"),
        )
        write(odd, url, queue="q")
        write(odd, url, queue="q")
        (message,) = queue.claim(10)
        assert message.payload == b"\x00\xff" and message.headers == {"h": "ü"}
        assert (message.key, message.priority, message.channel) == ("key", 4, "c9")
        again = queue.publish(1, channel="c9", kind="x", key="key", key_scope="channel")
        assert (again.status, again.id) == ("existing", message.id)
        assert message.due == datetime(2020, 1, 1, tzinfo=UTC)
        assert message.expires_at is not None
        assert message.expires_at - message.published_at == timedelta(hours=1)
    assert staged(url) == []


def test_leftovers_are_swept(spark: SparkSession, url: str) -> None:
    """A job that fails, one whose driver died three days ago, and a task that was killed after its
    job had ended leave nothing; a job that has not ended keeps what it has."""
    now = f"{int(time.time()):x}"
    alive = [f"staged_{now}_abc_7", f"staged_{now}_abc_job"]
    old = ["staged_1_dead_7", "staged_1_dead_job", f"staged_{now}_def_7"]
    with connected_to_any(parse({"url": url}, "read").address) as store:
        for name in (*old, *alive):
            store.tell("create_staging", table=name)
    before = sorted(f"laneway_{name}" for name in (*old, *alive))
    broken = spark.range(0, 10, 1, 3).selectExpr(
        "'1' as payload", "cast(id as int) * 99 as priority"
    )
    with pytest.raises(PySparkException) as caught:
        write(broken, url)
    assert "column 'priority' has values from" in reason(caught.value)
    # Spark answers before the tasks that it cancelled have ended and removed theirs.
    for _ in range(600):
        if sorted(staged(url)) == before:
            break
        time.sleep(0.1)
    assert sorted(staged(url)) == before
    write(frame(spark, 10), url)
    assert sorted(staged(url)) == [f"laneway_{name}" for name in alive]


def test_a_task_that_comes_after_the_end_of_its_job(
    spark: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark answers before the tasks that it cancelled have ended: these leave no table."""
    rows = frame(spark, 3)
    writer = MysqlSqliteWriter(parse({"url": url}, "write"), rows.schema)
    monkeypatch.setattr(mysql_sqlite, "task_context", lambda: Attempt())
    writer.write(iter(rows.toArrow().to_batches()))
    assert len(staged(url)) == 2
    writer.abort([])
    with pytest.raises(JobIsOver):
        writer.write(iter(rows.toArrow().to_batches()))
    assert staged(url) == []


class Attempt:
    """Of a task, as far as it is asked for."""

    def taskAttemptId(self) -> int:  # noqa: N802
        return 7


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("claims", "a claim stream needs PostgreSQL, not sqlite: only there is a batch recorded"),
        ("history", "a history stream needs PostgreSQL, not sqlite: only there is it known"),
    ],
)
def test_streams_are_refused_with_the_reason(
    spark: SparkSession, tmp_path: Path, what: str, sentence: str
) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    stream = spark.readStream.format("laneway").options(url=url, what=what)
    with pytest.raises(PySparkException) as caught:
        writing = stream.load().writeStream.foreachBatch(Sink())
        writing.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination(60)
    assert sentence in reason(caught.value)


def test_a_file_that_is_no_queue(spark: SparkSession, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "empty.db").close()
    with pytest.raises(PySparkException) as caught:
        load(spark, f"sqlite:///{tmp_path}/empty.db").count()
    assert "run queue.install()" in reason(caught.value)
