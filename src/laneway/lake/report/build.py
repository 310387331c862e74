"""Builds the report's tables with Spark, by the queries of the SQL files beside it."""

from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from laneway.lake.columns import VERSIONS
from laneway.lake.folder import LIVE_ROWS, Folder

from .summaries import METRIC, SUMMARIES, summary_sql
from .tables import COLUMNS, DAILY, Objective, table_sql
from .views import VIEWS, view_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


TABLES = "report/tables"
Progress = Callable[[str], None]

_PIECES = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
_MANY = 64
"""Pieces into which rows are divided to be grouped: so that each fits into memory. Spark puts those
of a small history together again."""
_SIZES = {
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.files.maxPartitionBytes": "32m",
}
"""How much Spark puts together, and reads at once. By default it is so much that groups do not fit
into memory, and are sorted by way of the disk instead."""
_KEPT = ("bundle", "busy", "route")
"""Views that several tables read: they are smaller than the history."""


class Builder:
    """Reads a lake's history and writes tables next to it."""

    def __init__(
        self,
        spark: "SparkSession",
        folder: Folder,
        objective: Objective,
        say: Progress,
    ) -> None:
        self._spark, self._folder, self._say = spark, folder, say
        self._objective = objective
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        # Timestamps that every reader understands, not the old ones of twelve bytes.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        usual = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
        spark.conf.set(_PIECES, str(max(usual, _MANY)))
        for name, value in _SIZES.items():
            spark.conf.set(name, value)

    def build_days(self, files: Sequence[str], changed: Collection[date]) -> None:
        """Builds the daily tables for these days from these files (paths in the lake)."""
        from pyspark.sql.functions import array, lit

        self._show_sources(files)
        kept = []
        for view in VIEWS:
            rows = self._spark.sql(view_sql(view))
            if view in _KEPT:
                kept.append(rows.persist())
            rows.createOrReplaceTempView(view)
        # What Spark knows to be small is sent to the rows that are joined to it.
        self._spark.table("route").count()
        days = array(*map(lit, sorted(changed)))
        arguments = {**self._objective.arguments, "days": days}
        for name in DAILY:
            self._say(f"table {name}, {len(changed)} days")
            self._write_days(self._spark.sql(table_sql(name), args=arguments), name, changed)
            self._show(name)
        for rows in kept:
            rows.unpersist()

    def build_summaries(self, now: datetime) -> None:
        """Builds the tables over all days, as of ``now``; the daily ones must exist."""
        self._show_live()
        for name in DAILY:
            self._show(name)
        arguments: dict[str, Any] = {"now": now, "target": self._objective.share}
        metric = self._spark.sql(summary_sql(METRIC), args={"now": now})
        metric.createOrReplaceTempView(METRIC)
        for name in SUMMARIES:
            self._say(f"table {name}")
            table = self._spark.sql(summary_sql(name), args=arguments)
            target = self._folder.url(f"{TABLES}/{name}")
            table.repartition(1).write.mode("overwrite").parquet(target)
            self._show(name)

    def _show_sources(self, files: Sequence[str]) -> None:
        base = self._folder.url("history")
        # Else one file says which columns there are, and it may be of an older version.
        reader = self._spark.read.option("basePath", base).option("mergeSchema", len(VERSIONS) > 1)
        rows = reader.parquet(*map(self._folder.pattern, files))
        rows.createOrReplaceTempView("history")
        self._show_live()

    def _show_live(self) -> None:
        snapshot = self._folder.pattern(LIVE_ROWS)
        self._spark.read.parquet(snapshot).createOrReplaceTempView("live")

    def _write_days(self, table: "DataFrame", name: str, days: Collection[date]) -> None:
        # A day is one file; several are written at once.
        writer = (
            table.repartition("day")
            .sortWithinPartitions("day")
            .write.partitionBy("day")
            .mode("overwrite")
        )
        target = self._folder.url(f"{TABLES}/{name}")
        writer.option("partitionOverwriteMode", "dynamic").parquet(target)

    def _show(self, name: str) -> None:
        # A table without rows may have no folder, and no file that says which columns it has.
        path = f"{TABLES}/{name}"
        if self._folder.names(path):
            rows = self._spark.read.schema(COLUMNS[name]).parquet(self._folder.pattern(path))
        else:
            rows = self._spark.createDataFrame([], COLUMNS[name])
        rows.createOrReplaceTempView(name)
