"""Builds the report's tables with Spark: queries of ``tables.sql`` and ``summaries.sql``."""

from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from laneway.lake.columns import VERSIONS
from laneway.lake.folder import LIVE_ROWS, Folder

from .objective import Objective
from .summaries import METRIC, SUMMARIES, summary_sql
from .tables import DAILY, VIEWS, table_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


TABLES = "report/tables"
# A table without rows is a folder without files: its columns are in this file.
_SCHEMA = "_schema.json"

SMALL = 50_000
"""Rows of history up to which a report is computed with one task and without compiled queries:
compiling them would take longer than running them."""

_SMALL_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

Progress = Callable[[str], None]


def is_small(folder: Folder) -> bool:
    return sum(folder.count(file.path) for file in folder.history_files()) <= SMALL


class Builder:
    """Reads a lake's history and writes tables next to it."""

    def __init__(
        self,
        spark: "SparkSession",
        folder: Folder,
        objective: Objective,
        say: Progress,
        *,
        small: bool = False,
    ) -> None:
        self._spark, self._folder, self._say = spark, folder, say
        self._objective, self._small = objective, small
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        # Timestamps that every reader understands, not the old ones of twelve bytes.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        if small:
            for name, value in _SMALL_SETTINGS.items():
                spark.conf.set(name, value)

    def build_days(self, files: Sequence[str], changed: Collection[date]) -> None:
        """Builds the daily tables for these days from these files (paths in the lake)."""
        from pyspark.sql.functions import array, lit

        self._show_sources(files)
        kept = []
        for view in VIEWS:
            rows = self._spark.sql(table_sql(view))
            # Two tables read the spans several times each; they are smaller than the history.
            if view == "span" or self._small:
                kept.append(rows.persist())
            rows.createOrReplaceTempView(view)
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
            if self._small:
                self._write_small(table.toArrow(), f"{TABLES}/{name}")
            else:
                target = self._folder.url(f"{TABLES}/{name}")
                table.coalesce(1).write.mode("overwrite").parquet(target)
            self._folder.write_text(table.schema.json(), f"{TABLES}/{name}/{_SCHEMA}")
            self._show(name)

    def _show_sources(self, files: Sequence[str]) -> None:
        base = self._folder.url("history")
        # Else one file says which columns there are, and it may be of an older version.
        reader = self._spark.read.option("basePath", base).option("mergeSchema", len(VERSIONS) > 1)
        rows = reader.parquet(*map(self._folder.pattern, files))
        self._one(rows).createOrReplaceTempView("history")
        self._show_live()

    def _show_live(self) -> None:
        snapshot = self._folder.pattern(LIVE_ROWS)
        self._one(self._spark.read.parquet(snapshot)).createOrReplaceTempView("live")

    def _one(self, rows: "DataFrame") -> "DataFrame":
        """In one partition if the history is small: then nothing is exchanged between tasks."""
        return rows.coalesce(1) if self._small else rows

    def _write_days(self, table: "DataFrame", name: str, days: Collection[date]) -> None:
        if self._small:
            path, rows = f"{TABLES}/{name}", table.toArrow()
            for day in days:
                mine = rows.filter(pc.equal(rows["day"], pa.scalar(day, pa.date32())))
                if mine.num_rows:
                    self._write_small(mine.drop_columns(["day"]), f"{path}/day={day.isoformat()}")
            self._folder.write_text(table.schema.json(), f"{path}/{_SCHEMA}")
            return
        writer = (
            table.repartition(1)
            .sortWithinPartitions("day")
            .write.partitionBy("day")
            .mode("overwrite")
        )
        target = self._folder.url(f"{TABLES}/{name}")
        writer.option("partitionOverwriteMode", "dynamic").parquet(target)
        self._folder.write_text(table.schema.json(), f"{TABLES}/{name}/{_SCHEMA}")

    def _write_small(self, rows: pa.Table, path: str) -> None:
        """Without a job: one file instead of those that were there."""
        self._folder.remove(path)
        self._folder.write_table(rows, f"{path}/part-00000.parquet")

    def _show(self, name: str) -> None:
        from pyspark.sql.types import StructType

        path = f"{TABLES}/{name}"
        schema = StructType.fromJson(self._folder.read_json(f"{path}/{_SCHEMA}"))
        rows = self._spark.read.schema(schema).parquet(self._folder.pattern(path))
        self._one(rows).createOrReplaceTempView(name)
