"""The history stream: nothing missed, nothing twice, whoever commits when."""

import threading
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

from laneway import Queue
from laneway.errors import InvalidOption
from laneway.lake import Lake
from laneway.spark import reason, watermark
from laneway.spark.history_stream import HistoryStream
from laneway.spark.options import parse
from tests.place import Place
from tests.spark.conftest import options
from tests.spark.streams import Sink, forget, run, start


def finish(queue: Queue, count: int) -> None:
    queue.publish_many([b"x"] * count)
    queue.complete(list(queue.claim(count)))


def unread(place: Place) -> dict[str, int]:
    return {one.name: one.unread for one in Lake(place.url, "", schema=place.schema).streams()}


def test_available_now_goes_on_where_it_stopped(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    sink = Sink()
    finish(queue, 500)
    run(spark, place, sink, tmp_path, what="history", maxRowsPerTrigger=200, stream="audit")
    assert [len(ids) for ids in sink.batches.values()] == [200, 200, 100]
    assert unread(place) == {"audit": 0}, "the last batch too"
    finish(queue, 50)
    assert unread(place) == {"audit": 50}
    run(spark, place, sink, tmp_path, what="history", maxRowsPerTrigger=200, stream="audit")
    assert len(sink.ids) == len(set(sink.ids)) == 550
    # The crash after the sink and before Spark's note of it: the last batch comes again, the same.
    before = dict(sink.batches)
    last = forget(tmp_path, "commits")
    sink.batches[last] = []
    finish(queue, 10)
    run(spark, place, sink, tmp_path, what="history")
    assert sorted(sink.batches[last]) == sorted(before[last])
    assert len(sink.ids) == len(set(sink.ids)) == 560


@pytest.mark.repeats("with one writer in the other tests here")
def test_eight_writers_none_missed_none_twice(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    """Writers take ids in one order and commit in another; the stream reads all the while."""
    stop = threading.Event()
    written: Counter[int] = Counter()
    writers = [
        threading.Thread(target=_write, args=(place, number, stop, written)) for number in range(8)
    ]
    sink = Sink()
    query = start(spark, place, sink, tmp_path, now=False, what="history", poll="0s")
    try:
        for writer in writers:
            writer.start()
        while len(sink.batches) < 8:
            assert query.exception() is None
            assert not query.awaitTermination(1)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    query.processAllAvailable()
    query.stop()
    with psycopg.connect(place.url) as connection:
        ids = connection.execute(
            sql.SQL("select id from {}.history").format(sql.Identifier(place.schema))
        ).fetchall()
    assert len(ids) == sum(written.values()) > 500
    assert sorted(sink.ids) == sorted(row[0] for row in ids)


def _write(place: Place, number: int, stop: threading.Event, written: Counter[int]) -> None:
    """Transactions of one row, some of which stay open for a while after they took their id."""
    insert = sql.SQL(
        "insert into {}.history"
        " (message_id, attempt, ended_at, terminal, dead, queue, channel, kind, outcome)"
        " values (1, 1, now(), true, false, 'q', 'c', '', 'completed')"
    ).format(sql.Identifier(place.schema))
    with psycopg.connect(place.url) as connection:
        while not stop.is_set():
            connection.execute(insert)
            stop.wait(0.002 * (number % 4))
            connection.commit()
            written[number] += 1


@pytest.mark.repeats("open transactions are a conformance case")
def test_an_open_transaction_holds_the_watermark_and_is_named(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    sink = Sink()
    finish(queue, 5)
    with psycopg.connect(place.url, application_name="nightly report") as holder:
        holder.execute("select pg_current_xact_id()")
        finish(queue, 5)
        run(spark, place, sink, tmp_path, what="history")
        assert len(sink.ids) == 5
        held = watermark(place.url, place.schema)
        assert held.waiting == 5 and held.holder is not None
        assert f"pid {holder.info.backend_pid} (nightly report" in held.holder
    run(spark, place, sink, tmp_path, what="history")
    assert len(sink.ids) == len(set(sink.ids)) == 10


def test_a_checkpoint_of_another_server_is_refused(queue: Queue, place: Place) -> None:
    """A restored dump: transactions have lower numbers here, so nothing would ever come after."""
    finish(queue, 1)
    given = parse(options(place, what="history"), "history stream")
    stream = HistoryStream(given, StructType([StructField("id", LongType())]))
    limit = ReadAllAvailable()
    reached = stream.latestOffset({"xid": 0, "id": 0}, limit)
    assert reached["id"] > 0 and stream.latestOffset(reached, limit) == reached
    with pytest.raises(InvalidOption, match="start without the checkpoint"):
        stream.latestOffset({"xid": reached["xid"] + 10**9, "id": reached["id"]}, limit)


def test_what_cannot_be_streamed_is_refused(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    stream = spark.readStream.format("laneway").options(**options(place, what="messages"))
    with pytest.raises(PySparkException) as caught:
        query = stream.load().writeStream.foreachBatch(Sink()).start()
        query.awaitTermination(60)
    assert "messages cannot be streamed: read history or claims" in reason(caught.value)
