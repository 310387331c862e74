"""How far the lake is, and what it holds."""

from dataclasses import dataclass
from datetime import date, datetime

from .books import Books


@dataclass(frozen=True, slots=True)
class Status:
    """``behind``: rows that are not in the lake, of which ``unsettled`` may not be read yet because
    an older transaction is still open. ``kept`` is the history that the queue writes."""

    batches: dict[str, int]
    rows: int
    files: int
    bytes: int
    first_day: date | None
    last_day: date | None
    behind: int
    behind_since: datetime | None
    unsettled: int
    readers: dict[str, datetime]
    kept: str


def status(books: Books) -> Status:
    batches = books.batches()
    files = books.files()
    _, (xid, row) = books.last()
    behind, since, unsettled = books.ask("behind", from_xid=xid, from_id=row)[0]
    states = [batch.state for batch in batches]
    return Status(
        batches={state: states.count(state) for state in dict.fromkeys(states)},
        rows=sum(file.rows for file in files),
        files=len(files),
        bytes=sum(file.size for file in files),
        first_day=min((file.day for file in files), default=None),
        last_day=max((file.day for file in files), default=None),
        behind=behind,
        behind_since=since,
        unsettled=unsettled or 0,
        readers={name: seen_at for name, _, _, seen_at in books.ask("readers")},
        kept=books.ask("settings")[0][0],
    )
