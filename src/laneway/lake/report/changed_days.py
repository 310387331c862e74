"""The days that a report computes again: those whose rows or waiting messages have changed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from laneway.lake.folder import Folder, LakeFile

from .build import DAILY, VIEWS
from .objective import Objective
from .spark_sql import table_sql

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
    texts = [table_sql(name) for name in (*VIEWS, *DAILY)]
    return hashlib.sha256("\0".join([repr(objective), *texts]).encode()).hexdigest()[:16]
