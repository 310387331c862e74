"""The report: tables for the days touched, answers over all days, and one page."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .building import Builder, Progress
from .columns import LIVE
from .folder import LIVE_NUMBERS, LIVE_ROWS, Folder
from .page import write_page
from .settings import Objective
from .touched import current_state, files_for, saved_state, touched_days

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = "report/report.html"


@dataclass(frozen=True, slots=True)
class Report:
    """Where the page is, and how many days had to be computed for it."""

    page: str
    days: int


def report(
    spark: "SparkSession",
    folder: Folder,
    *,
    objective: Objective | None = None,
    say: Progress = lambda text: None,
    note: str | None = None,
) -> Report:
    """Writes ``report/`` beside the history. ``note`` is shown at the top of the page.

    >>> report(penstock.spark.session(), Folder("lake")).page
    """
    objective = objective or Objective()
    seen_at = _seen(folder)
    new = current_state(folder, objective, seen_at)
    days = touched_days(folder, saved_state(folder), new) if new.files else set()
    if new.files:
        builder = Builder(spark, folder, objective, say)
        if days:
            builder.build_days(files_for(folder.history_files(), days), days)
        builder.build_answers(seen_at or _last_end(spark, folder))
        new.save(folder)
    write_page(folder, PAGE, objective, seen_at, note)
    return Report(folder.url(PAGE), len(days))


def _seen(folder: Folder) -> datetime | None:
    """When the last sync looked at what was alive; a lake without that has nothing alive."""
    if not folder.exists(LIVE_ROWS):
        folder.write_table(LIVE.empty_table(), LIVE_ROWS)
    told = folder.read_json(LIVE_NUMBERS)
    return told and datetime.fromisoformat(told["seen_at"])


def _last_end(spark: "SparkSession", folder: Folder) -> datetime:
    rows = spark.read.parquet(folder.pattern("history")).selectExpr("unix_micros(max(ended_at))")
    return datetime.fromtimestamp(rows.collect()[0][0] / 1e6, UTC)
