"""Batch reads on a real Spark: every row once, in Arrow, by either transport, with and without
push-down."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.types import StructType

from laneway import NewMessage, Queue
from laneway.spark import doctor, reason
from laneway.spark.options import parse
from laneway.spark.read import reader as reading
from laneway.spark.read.reader import LanewayReader
from tests.place import Place
from tests.spark.conftest import load, options

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_ODD = 'a "quoted", text\nof two lines, with \\ and ü'


@pytest.fixture(scope="module")
def filled(module_place: Place) -> Iterator[Queue]:
    """2,000 completed in four channels, 3 dead, 50 waiting."""
    with Queue(module_place.url, schema=module_place.schema) as queue:
        queue.install()
        drafts = [NewMessage({"n": n}, channel=f"c{n % 4}", kind="k") for n in range(2000)]
        queue.publish_many(drafts)
        for _ in range(4):
            queue.complete(list(queue.claim(500)))
        queue.publish_many(
            [NewMessage(b"\x00\xff", headers={"a": _ODD}, kind="") for _ in range(3)]
        )
        queue.fail(list(queue.claim(3)), reason="broken", error=ValueError(_ODD))
        waiting = [NewMessage("text", queue="other", headers={"x": 1}) for _ in range(50)]
        queue.publish_many(waiting)
        yield queue


def test_doctor_finds_all_in_place(spark: SparkSession) -> None:
    checks = doctor(spark)
    assert [check.name for check in checks] == ["Java", "pyspark", "pyarrow", "psycopg", "workers"]
    assert all(check.ok for check in checks), checks


@pytest.mark.parametrize("transport", ["adbc", "copy"])
def test_history_is_read_once_in_partitions_of_equal_size(
    spark: SparkSession, module_place: Place, filled: Queue, transport: str
) -> None:
    frame = load(spark, module_place, transport=transport, rowsPerPartition=600)
    rows = frame.withColumn("part", spark_partition_id()).collect()
    assert len(rows) == len({row.id for row in rows}) == 2003
    parts = [row.part for row in rows]
    assert sorted(parts.count(part) for part in set(parts)) == [203, 600, 600, 600]
    one = next(row for row in rows if row.outcome == "failed")
    expected = filled.history(one.message_id)[0]
    assert (one.error, one.reason, one.fence) == (expected.error, "broken", expected.fence)
    assert _ODD in one.error
    assert one.kind == "" and one.terminal is expected.terminal and one.dead is True
    assert one.ended_at.astimezone(UTC) == expected.ended_at


@pytest.mark.parametrize("percent", [5, 50, 100])
def test_a_large_history_is_cut_by_a_sample(
    module_place: Place, filled: Queue, monkeypatch: pytest.MonkeyPatch, percent: int
) -> None:
    """However the sample falls, every row is in one part; from a good one they are about equal."""
    for name, value in {"_LARGE": 0, "_SAMPLED_ROWS": 0, "_PERCENT": percent}.items():
        monkeypatch.setattr(reading, name, value)
    given = parse(options(module_place, rowsPerPartition=600), "read")
    reader = LanewayReader(given, "history", StructType().add("id", "long"))
    parts = [
        [id for batch in reader.read(part) for id in batch["id"].to_pylist()]
        for part in reader.partitions()
    ]
    ids = [id for part in parts for id in part]
    assert len(ids) == len(set(ids)) == 2003
    if percent == 100:
        assert sorted(map(len, parts)) == [203, 600, 600, 600]


@pytest.mark.parametrize("transport", ["adbc", "copy"])
def test_messages_and_dead_letters(
    spark: SparkSession, module_place: Place, filled: Queue, transport: str
) -> None:
    waiting = load(spark, module_place, what="messages", transport=transport).collect()
    assert {(row.queue, row.state, bytes(row.payload)) for row in waiting} == {
        ("other", "waiting", b"text")
    }
    assert len(waiting) == 50 and waiting[0].headers == '{"x": 1}'
    dead = load(spark, module_place, what="dead_letters", transport=transport).collect()
    assert [bytes(row.payload) for row in dead] == [b"\x00\xff"] * 3
    assert dead[0].reason == "broken"


def test_the_users_schema_is_the_select_list(
    spark: SparkSession, module_place: Place, filled: Queue
) -> None:
    reader = spark.read.format("laneway").options(**options(module_place))
    frame = reader.schema("channel string, priority int, message_id string").load()
    row = frame.orderBy("message_id").first()
    first = min(row.message_id for row in load(spark, module_place).select("message_id").collect())
    assert row is not None
    assert row.asDict() == {"channel": "c0", "priority": 0, "message_id": str(first)}


def test_options_select_rows(spark: SparkSession, module_place: Place, filled: Queue) -> None:
    assert load(spark, module_place, channel="c1", kind="k").count() == 500
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert load(spark, module_place, since=tomorrow.isoformat()).count() == 0
    assert load(spark, module_place, what="messages", queue="other", until=tomorrow).count() == 50


@pytest.mark.parametrize("pushed", [False, True])
def test_filters_answer_the_same_pushed_or_not(
    spark: SparkSession, module_place: Place, filled: Queue, pushed: bool
) -> None:
    ids = [row.message_id for row in load(spark, module_place, channel="c1").collect()]
    some = {id for id in ids if id % 8 == ids[0] % 8}
    assert 0 < len(some) < len(ids)
    conditions = {
        f"channel = 'c1' and outcome like 'comp%' and message_id % 8 = {ids[0] % 8}": len(some),
        "channel in ('c1', 'c2') and not (kind = '')": 1000,
        "error is null and ended_at > timestamp'2020-01-01 00:00:00' and attempt <= 1": 2000,
        "error like '%two lines%' and priority < 1 and channel > 'b'": 3,
        "reason <=> null and dead = false": 2000,
    }
    spark.conf.set(_PUSHDOWN, str(pushed).lower())
    try:
        frame = load(spark, module_place)
        found = {text: frame.where(text).count() for text in conditions}
        plan = frame.where("channel = 'c1'")._jdf.queryExecution().optimizedPlan().toString()
    finally:
        spark.conf.set(_PUSHDOWN, "false")
    assert found == conditions
    assert ("Filter" in plan) is not pushed


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"queu": "x"}, "there is no option 'queu': did you mean 'queue'?"),
        ({"stream": "x"}, "option 'stream' does not exist for a read"),
        ({"since": "yesterday"}, "option 'since' is 'yesterday': write a time like"),
        ({"rowsPerPartition": "0"}, "option 'rowsPerPartition' is '0': it must be a number from 1"),
        ({"what": "tables"}, "option 'what' is 'tables': it must be history or"),
        ({"what": "claims"}, "claims are a stream: use spark.readStream"),
        ({"url": "oracle://x"}, "not a database URL that Laneway knows"),
        ({"schema": "elsewhere"}, "run queue.install()"),
    ],
)
def test_wrong_options_are_refused_by_name(
    spark: SparkSession, place: Place, wrong: dict[str, str], sentence: str
) -> None:
    reader = spark.read.format("laneway").options(**{**options(place), **wrong})
    with pytest.raises(PySparkException) as caught:
        reader.schema("id bigint").load().collect()
    assert sentence in reason(caught.value)


def test_an_unknown_column_is_refused(spark: SparkSession, place: Place) -> None:
    reader = spark.read.format("laneway").options(**options(place)).schema("colour string")
    with pytest.raises(PySparkException) as caught:
        reader.load().collect()
    assert reason(caught.value).startswith("history has no column 'colour': it has id, xid,")
