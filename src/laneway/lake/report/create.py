"""Creates a report: tables of the days that changed, summaries over all days, and one page."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from laneway.lake.columns import LIVE
from laneway.lake.folder import LIVE_NUMBERS, LIVE_ROWS, Folder

from .build import Builder, Progress, is_small
from .changed_days import changed_days, current_state, files_for, saved_state
from .objective import Objective
from .page import write_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = "report/report.html"


@dataclass(frozen=True, slots=True)
class Report:
    """The path of the page, and how many days were computed for it."""

    page: str
    days: int


def create_report(
    spark: "SparkSession",
    folder: Folder,
    *,
    objective: Objective | None = None,
    say: Progress = lambda text: None,
    note: str | None = None,
    small: bool | None = None,
) -> Report:
    """Writes ``report/`` beside the history. ``note`` is shown at the top of the page. ``small``:
    in one task, which is faster for few rows; by default their number decides.

    >>> create_report(laneway.spark.session(), Folder("lake")).page
    """
    objective = objective or Objective()
    seen_at = _seen(folder)
    new = current_state(folder, objective, seen_at)
    days = changed_days(folder, saved_state(folder), new) if new.files else set()
    if new.files:
        builder = Builder(
            spark, folder, objective, say, small=is_small(folder) if small is None else small
        )
        if days:
            builder.build_days(files_for(folder.history_files(), days), days)
        builder.build_summaries(seen_at or _last_end(spark, folder))
        new.save(folder)
    write_page(folder, PAGE, objective, seen_at, note)
    return Report(folder.url(PAGE), len(days))


def _seen(folder: Folder) -> datetime | None:
    """When the last sync listed the messages that had not ended. A lake without such a list gets
    an empty one."""
    if not folder.exists(LIVE_ROWS):
        folder.write_table(LIVE.empty_table(), LIVE_ROWS)
    snapshot = folder.read_json(LIVE_NUMBERS)
    return snapshot and datetime.fromisoformat(snapshot["seen_at"])


def _last_end(spark: "SparkSession", folder: Folder) -> datetime:
    rows = spark.read.parquet(folder.pattern("history")).selectExpr("unix_micros(max(ended_at))")
    return datetime.fromtimestamp(rows.collect()[0][0] / 1e6, UTC)
