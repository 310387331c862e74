"""Bulk publish: all of a frame or nothing, once per key, whatever tasks and drivers do."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import psycopg
import pyarrow
import pytest
from psycopg import sql
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, expr, lit, udf
from pyspark.sql.types import BinaryType, StructField, StructType

from laneway import NewMessage, Queue, Worker
from laneway.errors import InvalidCall
from laneway.spark import calls, reason
from laneway.spark.options import parse
from laneway.spark.publish import writer as publishing
from laneway.spark.publish.stage import stage
from laneway.spark.publish.writer import LanewayStreamWriter, Staged
from tests.place import Place
from tests.spark.conftest import options
from tests.spark.test_parts import leftovers

_PAYLOAD = StructField("payload", BinaryType())


def write(frame: DataFrame, place: Place, **more: Any) -> None:
    frame.write.format("laneway").options(**options(place, **more)).mode("append").save()


def look(place: Place, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(place.url) as connection:
        statement = sql.SQL(text).format(s=sql.Identifier(place.schema))
        return connection.execute(statement).fetchall()


def staging_tables(place: Place) -> int:
    with psycopg.connect(place.url) as connection:
        rows = connection.execute(
            "select count(*) from pg_tables where schemaname = %s and tablename ~ '^staged_.{16}_'",
            [place.schema],
        ).fetchone()
        assert rows is not None
        return int(rows[0])


def test_a_frame_is_published_as_the_client_would(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    """The same messages by publish_many and by Spark differ in nothing but ids and times."""
    at = datetime(2031, 5, 1, 12, tzinfo=UTC)
    rows = [
        (
            '{"n": 1, "t": "a\\\\b \\"q\\" ü"}',
            "c1",
            "k",
            "key-1",
            3,
            at,
            None,
            5,
            '{"h": [1, null]}',
        ),
        ("{}", "c1", "", None, 0, None, at, None, None),
        ('"\\\\x41"', None, "k", None, None, None, None, None, "{}"),
        ("3", "c1", "k", "key-1", 9, None, None, 1, None),
    ]
    frame = spark.createDataFrame(
        rows,
        "payload string, channel string, kind string, key string, priority int, at timestamp, "
        "expires_at timestamp, max_attempts int, headers string",
    ).coalesce(1)
    write(frame, place, queue="spark", channel="main")
    queue.publish_many(
        [
            NewMessage(
                row[0].encode(),
                queue="client",
                channel=row[1] or "main",
                kind=row[2] or "",
                key=row[3],
                priority=row[4] or 0,
                at=row[5],
                expires_at=row[6],
                max_attempts=row[7],
                headers=json.loads(row[8]) if row[8] else None,
                content_type="application/json",
            )
            for row in rows
        ]
    )
    columns = (
        "channel, kind, key, priority, due = published_at, case when due > now() then due end, "
        "expires_at, max_attempts, content_type, headers, payload, attempt, state"
    )
    ours, theirs = (
        look(place, f"select {columns} from {{s}}.message_v1 where queue = '{name}' order by id")  # noqa: S608
        for name in ("spark", "client")
    )
    assert len(ours) == 3 and ours == theirs
    wakes = "channel, priority, n, due <= at, case when due > now() then due end"
    ours, theirs = (
        look(place, f"select {wakes} from {{s}}.wake where queue = '{name}' order by 1, 2, 4")  # noqa: S608
        for name in ("spark", "client")
    )
    assert ours == theirs
    assert leftovers(place) == []


def test_bytes_and_lengths_of_time(spark: SparkSession, queue: Queue, place: Place) -> None:
    frame = spark.createDataFrame([(b"\x00\xff\\x",), (b"",)], "payload binary")
    frame = frame.withColumn("delay", expr("interval '90' second"))
    write(frame.withColumn("expires_in", expr("interval '1' day")), place)
    write(frame, place)
    rows = look(
        place,
        "select payload, due - published_at, expires_at - published_at, content_type "
        "from {s}.message order by id",
    )
    assert sorted(bytes(row[0]) for row in rows) == [b"", b"", b"\x00\xff\\x", b"\x00\xff\\x"]
    assert {row[1] for row in rows} == {timedelta(seconds=90)}
    assert [row[2] for row in rows] == [timedelta(days=1)] * 2 + [None] * 2
    assert {row[3] for row in rows} == {"application/octet-stream"}


def many(spark: SparkSession, count: int, parts: int = 4) -> DataFrame:
    frame = spark.range(0, count, 1, parts)
    return frame.select(
        concat(lit('{"n": '), col("id"), lit("}")).alias("payload"),
        concat(lit("c"), col("id") % 7).alias("channel"),
    )


def test_what_is_published_can_be_claimed(spark: SparkSession, queue: Queue, place: Place) -> None:
    write(many(spark, 1000), place)
    claimed = list(queue.claim(1000))
    assert sorted(message.json()["n"] for message in claimed) == list(range(1000))
    assert [queue.complete(claimed)[0].status] == ["completed"]


def test_a_frame_without_rows_leaves_nothing(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    write(many(spark, 0), place)
    assert look(place, "select count(*) from {s}.message") == [(0,)]
    assert leftovers(place) == []


def test_the_same_key_twice_publishes_once(spark: SparkSession, queue: Queue, place: Place) -> None:
    for _ in range(2):
        write(many(spark, 100), place, idempotency_key="monday")
    write(many(spark, 10), place, idempotency_key="tuesday")
    assert look(place, "select count(*) from {s}.message") == [(110,)]
    assert look(place, "select source, published from {s}.publication order by 1") == [
        ("key monday", 100),
        ("key tuesday", 10),
    ]


def fails_after_staging(n: int) -> int:
    """Fails late in the first attempt of the second partition."""
    context = TaskContext.get()
    assert context is not None
    if context.partitionId() == 1 and context.attemptNumber() == 0 and n % 250 == 249:
        raise RuntimeError("this attempt fails on purpose")
    return n


def test_a_failing_task_publishes_nothing(spark: SparkSession, queue: Queue, place: Place) -> None:
    """Local mode does not retry: the job fails, and neither rows nor tables are left."""
    unlucky = udf(fails_after_staging, "bigint", useArrow=False)
    frame = spark.range(0, 1000, 1, 4).select(concat(lit("1"), unlucky(col("id"))).alias("payload"))
    with pytest.raises(PySparkException):
        write(frame, place)
    assert look(place, "select count(*) from {s}.message") == [(0,)]
    assert leftovers(place) == []


def test_a_full_or_closed_channel_refuses_the_whole_frame(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    queue.channel("c3").limit(backlog=20)
    with pytest.raises(PySparkException) as caught:
        write(many(spark, 700), place)
    assert reason(caught.value) == (
        "channel c3 of queue default is full, so 80 messages would be refused: "
        "nothing of the job was published"
    )
    assert look(place, "select count(*) from {s}.message") == [(0,)]
    write(many(spark, 140), place)
    assert look(place, "select count(*) from {s}.message") == [(140,)]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            "'{} {}' as payload",
            ": the payload is not JSON: Extra data",
        ),
        ("'x' as text", "the frame has no column 'payload'"),
        ("'1' as payload & 1 as colour", "a message has no field 'colour'"),
        ("'1' as payload & 1 as channel", "column 'channel' is int: it must be string"),
        ("'1' as payload & 211 as priority", "column 'priority' has values from 211 to 211"),
        ("'1' as payload & repeat('y', 300) as key", "a key has 300 bytes, 255 are allowed"),
        ("'1' as payload & '' as channel", "a channel is empty"),
        ("cast(null as string) as payload", "a payload is null"),
        ("repeat('x', 1048577) as payload", "a payload has 1,048,577 bytes"),
        (
            "'1' as payload & 'no json' as headers",
            "'headers' has a value that is not a JSON object",
        ),
    ],
)
def test_what_cannot_be_a_message_is_refused(
    spark: SparkSession, queue: Queue, place: Place, columns: str, sentence: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        write(spark.range(1).selectExpr(*columns.split(" & ")), place)
    assert sentence in reason(caught.value)
    assert look(place, "select count(*) from {s}.message") == [(0,)]


def test_leftovers_of_dead_streams_are_swept(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    """A task that staged, and a driver that never came; two days later another job tidies up."""
    look(place, "select {s}.stage_v1('dead', 7)")
    look(place, "select {s}.stage_v1('alive', 8)")
    assert staging_tables(place) == 2
    look(
        place,
        "update {s}.staged set created_at = now() - interval '3 days' "
        "where job = 'dead' returning 1",
    )
    write(many(spark, 10), place)
    assert look(place, "select job from {s}.staged") == [("alive",)]
    assert staging_tables(place) == 1


def test_rows_go_to_their_channels_in_their_order(queue: Queue, place: Place) -> None:
    """Tasks compute the channel's id themselves and put the rows of a channel side by side."""
    names = ["ü", None, "a", "naïve", "ü", "a", None, "😀", "ü", "a"]
    payloads, queues = [str(n).encode() for n in range(10)], ["q", "ñ"] * 5
    batch = pyarrow.RecordBatch.from_pydict(
        {"payload": payloads, "queue": queues, "channel": names}
    )
    given = parse(options(place, channel="main"), "write")
    name, _ = stage(given, "job", 1, iter([batch]))
    look(place, f"select {{s}}.publish_staged_v1('job', array['{name}'], array[10], null, 0)")
    found = look(place, "select queue, channel, payload from {s}.message order by id")
    expected = list(zip(queues, [name or "main" for name in names], payloads, strict=True))
    assert sorted(found) == sorted(expected)
    for lane in {row[:2] for row in expected}:
        assert [row for row in found if row[:2] == lane] == [
            row for row in expected if row[:2] == lane
        ]
    changes = sum(one[:2] != two[:2] for one, two in pairwise(found))
    assert changes + 1 == len({row[:2] for row in expected})
    wrong = (
        "select 1 from {s}.message m where m.channel_id <> {s}.channel_id_v1(m.queue, m.channel)"
    )
    assert look(place, wrong) == []
    assert look(place, "select sum(n) from {s}.wake") == [(10,)]


def test_a_batch_of_very_many_partitions(
    queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More staging tables than a server has locks for, here a few of them: they become few first.
    Also of attempts that nobody asks for any more, which are dropped little by little."""
    monkeypatch.setattr(publishing, "AT_ONCE", 3)
    writer = LanewayStreamWriter(parse(options(place), "publish stream"), StructType([_PAYLOAD]))
    told = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "0"}
    context = SimpleNamespace(taskAttemptId=lambda: 7, getLocalProperty=told.get)
    monkeypatch.setattr(publishing, "task_context", lambda: context)
    batches = [pyarrow.RecordBatch.from_pydict({"payload": [b"%d" % n] * 2}) for n in range(20)]
    staged = [writer.write(iter([batch])) for batch in batches]
    assert staging_tables(place) == 20, "each has a name of its own, whatever its attempt is called"
    writer.commit([*staged[:10], Staged("q 0", None, 0, "q", 0)], 0)
    found = look(place, "select payload from {s}.message order by id")
    assert found == [(b"%d" % n,) for n in range(10) for _ in range(2)]
    assert staging_tables(place) == 0 and look(place, "select name from {s}.staged") == []


def test_locks_for_a_few_hundred_tables_are_enough(queue: Queue, place: Place) -> None:
    look(place, "select {s}.stage_v1('dead', n) from generate_series(1, 250) n")
    assert look(place, "select {s}.unstage_v1('dead')") == [(200,)]
    assert look(place, "select {s}.unstage_v1('dead')") == [(50,)]


def test_rows_that_a_crash_took_are_missed(queue: Queue, place: Place) -> None:
    """A staging table that lost its rows (unlogged, after a crash) fails the job, loudly."""
    name = look(place, "select {s}.stage_v1('job', 1)")[0][0]
    call = "select {{s}}.publish_staged_v1('job', array['{}'], array[5], null, 0)"
    with pytest.raises(psycopg.Error, match="staged 5 rows, 0 are left"):
        look(place, call.format(name))
    with pytest.raises(psycopg.Error, match="a staging table of job job is gone"):
        look(place, call.format("staged_x_1"))


def test_a_frame_of_calls_of_a_task(spark: SparkSession, queue: Queue, place: Place) -> None:
    worker, seen = Worker(queue), []

    @worker.task(queue="receipts", priority=4)
    def send(order: int, copy: bool = False, days: int = 3) -> None:
        seen.append((order, copy, days))

    rows = [(1, True, "a"), (2, None, "b")]
    frame = spark.createDataFrame(rows, "order bigint, copy boolean, channel string")
    write(calls(frame, send), place)
    found = {m.channel: m.priority for m in queue.messages(queue="receipts")}
    assert found == {"a": 4, "b": 4}
    worker.run(until_empty=True)
    assert sorted(seen) == [(1, True, 3), (2, False, 3)]
    with pytest.raises(InvalidCall, match="send needs the columns order"):
        calls(frame.drop("order"), send)
    with pytest.raises(InvalidCall, match="send has no parameter tenant, nor has a message"):
        calls(frame.withColumnRenamed("channel", "tenant"), send)
