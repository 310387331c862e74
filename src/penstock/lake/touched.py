"""Which days a report has to compute anew: those whose rows, or whose waiting messages, changed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from .building import DAILY, VIEWS
from .folder import Folder, LakeFile
from .settings import Objective
from .sqltext import statement

STATE = "report/state.json"


@dataclass(frozen=True, slots=True)
class State:
    """What the last report was made of; ``recipe`` stands for its statements and objective."""

    recipe: str
    seen_at: datetime | None = None
    files: dict[str, int] = field(default_factory=dict)

    def save(self, folder: Folder) -> None:
        seen = self.seen_at.isoformat() if self.seen_at else None
        body = {"recipe": self.recipe, "seen_at": seen, "files": self.files}
        folder.write_text(json.dumps(body, indent=1), STATE)


def current_state(folder: Folder, objective: Objective, seen_at: datetime | None) -> State:
    files = {file.path: file.size for file in folder.history_files()}
    return State(_recipe(objective), seen_at, files)


def saved_state(folder: Folder) -> State | None:
    body: dict[str, Any] | None = folder.read_json(STATE)
    if body is None:
        return None
    seen = body["seen_at"] and datetime.fromisoformat(body["seen_at"])
    return State(body["recipe"], seen, body["files"])


def touched_days(folder: Folder, old: State | None, new: State) -> set[date]:
    """A row counts on every day from when it was due; compaction of old days changes nothing."""
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
    """All that may say something about these days: rows end on the day they began, or later."""
    first = min(days).isoformat()
    return [file.path for file in files if file.day >= first]


def _first_due(folder: Folder, paths: Iterable[str]) -> date:
    firsts: list[datetime] = [
        first for path in paths if (first := folder.least(path, "due")) is not None
    ]
    days = [_day(path) for path in paths]
    return min([*days, *(first.astimezone(UTC).date() for first in firsts)])


def _last_day(state: State) -> date:
    last = max(map(_day, state.files))
    return max(last, state.seen_at.date()) if state.seen_at else last


def _span(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _day(path: str) -> date:
    return date.fromisoformat(path.split("/")[1].removeprefix("day="))


def _recipe(objective: Objective) -> str:
    texts = [statement("tables", name) for name in (*VIEWS, *DAILY)]
    return hashlib.sha256("\0".join([repr(objective), *texts]).encode()).hexdigest()[:16]
