"""Creates a report: tables of the days that changed, summaries over all days, and one page."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from laneway.lake.columns import LIVE
from laneway.lake.folder import LIVE_NUMBERS, LIVE_ROWS, Folder, LakeFile

from .build import Builder, Progress
from .page import write_page
from .small import SmallBuilder
from .tables import DAILY, Objective, table_sql
from .views import VIEWS, view_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STATE = "report/state.json"


@dataclass(frozen=True, slots=True)
class ReportState:
    """The input of a report; ``recipe`` is a hash of its statements and objective."""

    recipe: str
    seen_at: datetime | None = None
    files: dict[str, int] = field(default_factory=dict)

    def save(self, folder: Folder) -> None:
        seen = self.seen_at.isoformat() if self.seen_at else None
        body = {"recipe": self.recipe, "seen_at": seen, "files": self.files}
        folder.write_text(json.dumps(body, indent=1), STATE)


def current_state(folder: Folder, objective: Objective, seen_at: datetime | None) -> ReportState:
    files = {file.path: file.size for file in folder.history_files()}
    return ReportState(_recipe(objective), seen_at, files)


def saved_state(folder: Folder) -> ReportState | None:
    body: dict[str, Any] | None = folder.read_json(STATE)
    if body is None:
        return None
    seen = body["seen_at"] and datetime.fromisoformat(body["seen_at"])
    return ReportState(body["recipe"], seen, body["files"])


def changed_days(folder: Folder, old: ReportState | None, new: ReportState) -> set[date]:
    """A row counts on every day since it was due. Compacting old days changes nothing."""
    if old is None or old.recipe != new.recipe:
        return set(_span(_first_due(folder, new.files), _last_day(new)))
    added = [path for path in new.files if old.files.get(path) != new.files[path]]
    gone = [path for path in old.files if path not in new.files]
    days = {_day(path) for path in (*added, *gone)}
    for path in added:
        days |= set(_span(_first_due(folder, [path]), _day(path)))
    if new.seen_at and new.seen_at != old.seen_at:
        days |= set(_span((old.seen_at or new.seen_at).date(), new.seen_at.date()))
    return days


def files_for(files: Iterable[LakeFile], days: set[date]) -> list[str]:
    """All files with rows about these days: a row ends on the day it began or later."""
    first = min(days).isoformat()
    return [file.path for file in files if file.day >= first]


def _first_due(folder: Folder, paths: Iterable[str]) -> date:
    firsts: list[datetime] = [
        first for path in paths if (first := folder.least(path, "due")) is not None
    ]
    days = [_day(path) for path in paths]
    return min([*days, *(first.astimezone(UTC).date() for first in firsts)])


def _last_day(state: ReportState) -> date:
    last = max(map(_day, state.files))
    return max(last, state.seen_at.date()) if state.seen_at else last


def _span(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _day(path: str) -> date:
    return date.fromisoformat(path.split("/")[1].removeprefix("day="))


def _recipe(objective: Objective) -> str:
    texts = [*map(view_sql, VIEWS), *map(table_sql, DAILY)]
    return hashlib.sha256("\0".join([repr(objective), *texts]).encode()).hexdigest()[:16]


PAGE = "report/report.html"


@dataclass(frozen=True, slots=True)
class Report:
    """The path of the page, and how many days were computed for it."""

    page: str
    days: int


def create_report(
    spark: "SparkSession | None",
    folder: Folder,
    *,
    objective: Objective | None = None,
    say: Progress = lambda text: None,
    note: str | None = None,
) -> Report:
    """Writes ``report/`` beside the history. ``note`` is shown at the top of the page. Without
    ``spark`` it is computed in this process, which is much faster for few rows.

    >>> create_report(laneway.spark.session(), Folder("lake")).page
    """
    objective = objective or Objective()
    seen_at = _seen(folder)
    new = current_state(folder, objective, seen_at)
    days = changed_days(folder, saved_state(folder), new) if new.files else set()
    if new.files:
        builder: Builder | SmallBuilder
        if spark is None:
            builder = SmallBuilder(folder, objective, say)
        else:
            builder = Builder(spark, folder, objective, say)
        if days:
            builder.build_days(files_for(folder.history_files(), days), days)
        builder.build_summaries(seen_at or _last_end(folder, new.files))
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


def _last_end(folder: Folder, paths: Iterable[str]) -> datetime:
    last = max(map(_day, paths))
    ends = [folder.read_table(path, ["ended_at"]) for path in paths if _day(path) == last]
    moment: datetime = pc.max(pa.concat_tables(ends)["ended_at"]).as_py()
    return moment.astimezone(UTC)
