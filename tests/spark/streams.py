"""Running streams in tests, and crashing them without killing anything."""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.place import Place
from tests.spark.conftest import options


class Sink:
    """Collects the ids of each batch by its number: a replayed batch replaces itself."""

    def __init__(self) -> None:
        self.batches: dict[int, list[int]] = {}
        self.replayed: list[int] = []

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if batch in self.batches:
            self.replayed.append(batch)
        self.batches[batch] = [row.id for row in frame.select("id").collect()]

    @property
    def ids(self) -> list[int]:
        return [id for ids in self.batches.values() for id in ids]


def start(
    spark: SparkSession,
    place: Place,
    sink: Any,
    checkpoint: Path,
    *,
    now: bool = True,
    every: str | None = None,
    **more: Any,
) -> StreamingQuery:
    stream = spark.readStream.format("laneway").options(**options(place, **more)).load()
    writing = stream.writeStream.foreachBatch(sink)
    writing = writing.option("checkpointLocation", str(checkpoint))
    if every is not None:
        writing = writing.trigger(processingTime=every)
    elif now:
        writing = writing.trigger(availableNow=True)
    return writing.start()


def run(spark: SparkSession, place: Place, sink: Any, checkpoint: Path, **more: Any) -> None:
    """One AvailableNow run; raises what it raises."""
    assert start(spark, place, sink, checkpoint, **more).awaitTermination(180)


def forget(checkpoint: Path, log: str) -> int:
    """What a crash leaves that came before Spark wrote the last entry of ``log``."""
    last = max(int(file.name) for file in (checkpoint / log).iterdir() if file.name.isdigit())
    (checkpoint / log / str(last)).unlink()
    (checkpoint / log / f".{last}.crc").unlink(missing_ok=True)
    return last
