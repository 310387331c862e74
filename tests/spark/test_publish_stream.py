"""The publish sink: each batch of a stream is in the queue once, also when it is replayed."""

from pathlib import Path
from typing import Any, cast

import psycopg
import pyarrow
from psycopg import sql
from pyspark.sql import SparkSession

from laneway import Queue
from laneway.spark.options import parse
from laneway.spark.publish.stage import stage
from laneway.spark.store import connected
from tests.place import Place
from tests.spark.conftest import options
from tests.spark.streams import forget


def payloads(place: Place) -> list[str]:
    with psycopg.connect(place.url) as connection:
        statement = sql.SQL("select convert_from(payload, 'UTF8') from {}.message order by 1")
        rows = connection.execute(statement.format(sql.Identifier(place.schema))).fetchall()
        return [row[0] for row in rows]


def publish(spark: SparkSession, place: Place, source: Path, checkpoint: Path, **more: Any) -> None:
    """An AvailableNow run from text files into the queue."""
    lines = spark.readStream.schema("payload string").text(str(source))
    more = {"content_type": "text/plain", **more}
    writing = lines.writeStream.format("laneway").options(**options(place, **more))
    writing = writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    assert writing.start().awaitTermination(120)


def test_a_replayed_batch_is_published_once(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    (source / "1.txt").write_text("a\nb\nc\n")
    publish(spark, place, source, checkpoint, channel="c")
    assert payloads(place) == ["a", "b", "c"]
    # The crash after our commit and before Spark's note of it.
    forget(checkpoint, "commits")
    publish(spark, place, source, checkpoint, channel="c")
    assert payloads(place) == ["a", "b", "c"]
    (source / "2.txt").write_text("d\n")
    publish(spark, place, source, checkpoint, channel="c")
    assert payloads(place) == ["a", "b", "c", "d"]
    # Another query is another source: the same files are published again.
    publish(spark, place, source, tmp_path / "other", channel="c")
    assert payloads(place) == ["a", "a", "b", "b", "c", "c", "d", "d"]
    assert len(list(queue.claim(10))) == 8


def test_a_checkpoint_of_long_ago_publishes_nothing_again(queue: Queue, place: Place) -> None:
    """What is kept of a query's batches is their last hundred; an older one came before them."""
    given = parse(options(place), "publish stream")

    def published(batch: int) -> tuple[int, int, bool]:
        row = pyarrow.RecordBatch.from_pydict({"payload": [b"%d" % batch]})
        table, _ = stage(given, f"q {batch}", 1, iter([row]))
        with connected(given.address) as store:
            text = sql.SQL("select * from {}.publish_staged_v1(%s, %s, array[1], 'query q', %s)")
            values = [f"q {batch}", [table], batch]
            found = store.connection.execute(
                text.format(sql.Identifier(place.schema)), values
            ).fetchone()
        return cast(tuple[int, int, bool], found)

    assert published(3) == (1, 0, False)
    assert published(200) == (1, 0, False)
    assert published(200) == (1, 0, True)
    assert published(3) == (0, 0, True), "its own note is gone"
    assert payloads(place) == ["200", "3"]
