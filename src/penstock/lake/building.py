"""Builds the report's tables with Spark: by day, and only the days that are touched."""

from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from .folder import LIVE_ROWS, Folder
from .settings import Objective
from .sqltext import statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEWS = ("attempt", "signature", "span")
DAILY = (
    "flow",
    "latency",
    "lanes",
    "tries",
    "failures",
    "crashes",
    "repeats",
    "tenants",
    "letters",
    "percentiles",
    "hours",
    "fairness",
)
"""In an order in which each finds those that it reads."""

ANSWERS = ("signatures", "redrive", "slo", "normal", "forecast", "outlook")
TABLES = "report/tables"
# A table without rows is a folder without files; its columns are known all the same.
_SCHEMA = "_schema.json"

Progress = Callable[[str], None]


class Builder:
    """Reads a lake's history and writes tables beside it."""

    def __init__(
        self, spark: "SparkSession", folder: Folder, objective: Objective, say: Progress
    ) -> None:
        self._spark, self._folder, self._say = spark, folder, say
        self._objective = objective
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        # Instants that every reader understands, not the old twelve-byte ones.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")

    def build_days(self, files: Sequence[str], touched: Collection[date]) -> None:
        """The daily tables for these days, from these files (paths under the lake)."""
        from pyspark.sql.functions import array, lit

        self._show_sources(files)
        for view in VIEWS:
            self._spark.sql(statement("tables", view)).createOrReplaceTempView(view)
        # Read by two tables, several times each, and much smaller than the history.
        spans = self._spark.table("span").persist()
        days = array(*map(lit, sorted(touched)))
        arguments = {**self._objective.arguments, "days": days}
        for name in DAILY:
            self._say(f"table {name}, {len(touched)} days")
            self._write_days(self._spark.sql(statement("tables", name), args=arguments), name)
            self._show(name)
        spans.unpersist()

    def build_answers(self, now: datetime) -> None:
        """The tables over all days, as of ``now``; the daily ones must be there."""
        self._show_live()
        for name in DAILY:
            self._show(name)
        arguments: dict[str, Any] = {"now": now, "target": self._objective.share}
        metric = self._spark.sql(statement("answers", "metric"), args={"now": now})
        metric.createOrReplaceTempView("metric")
        for name in ANSWERS:
            self._say(f"table {name}")
            table = self._spark.sql(statement("answers", name), args=arguments)
            table.coalesce(1).write.mode("overwrite").parquet(self._folder.url(f"{TABLES}/{name}"))
            self._folder.write_text(table.schema.json(), f"{TABLES}/{name}/{_SCHEMA}")
            self._show(name)

    def _show_sources(self, files: Sequence[str]) -> None:
        base = self._folder.url("history")
        reader = self._spark.read.option("basePath", base)
        reader.parquet(*map(self._folder.pattern, files)).createOrReplaceTempView("history")
        self._show_live()

    def _show_live(self) -> None:
        snapshot = self._folder.pattern(LIVE_ROWS)
        self._spark.read.parquet(snapshot).createOrReplaceTempView("live")

    def _write_days(self, table: "DataFrame", name: str) -> None:
        writer = (
            table.repartition(1)
            .sortWithinPartitions("day")
            .write.partitionBy("day")
            .mode("overwrite")
        )
        target = self._folder.url(f"{TABLES}/{name}")
        writer.option("partitionOverwriteMode", "dynamic").parquet(target)
        self._folder.write_text(table.schema.json(), f"{TABLES}/{name}/{_SCHEMA}")

    def _show(self, name: str) -> None:
        from pyspark.sql.types import StructType

        path = f"{TABLES}/{name}"
        schema = StructType.fromJson(self._folder.read_json(f"{path}/{_SCHEMA}"))
        rows = self._spark.read.schema(schema).parquet(self._folder.pattern(path))
        rows.createOrReplaceTempView(name)
