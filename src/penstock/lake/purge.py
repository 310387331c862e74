"""Drops history from the database that the lake holds for certain."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from .books import Books, DayCount
from .folder import Folder
from .verify import problem_with

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Day:
    """A day of history, and why it stays; None: it goes, or has gone."""

    day: date
    rows: int
    stays: str | None


def purge(
    books: Books,
    folder: Folder,
    *,
    keep: timedelta,
    dry_run: bool = False,
    say: Progress = lambda text: None,
) -> list[Day]:
    """Whole days (UTC) that ended before ``keep`` ago. Their files are read back once more first:
    what was verified last week may have been damaged since."""
    before = books.ended_before(keep)
    days = [_judged(books, folder, row, before) for row in books.days()]
    if dry_run:
        return days
    done = []
    for day in days:
        if day.stays is None:
            gone = books.purge_day(day.day)
            busy = "somebody reads it, or it changed: try again"
            day = Day(day.day, day.rows, busy if gone is None else None)
            say(f"{day.day}: {day.rows:,} rows {'stay' if day.stays else 'purged'}")
        done.append(day)
    books.mark_purged()
    return done


def _judged(books: Books, folder: Folder, row: DayCount, before: date) -> Day:
    day, rows, unsynced, unverified, unread = row
    if day >= before:
        return Day(day, rows, f"younger than the retention (until {before})")
    if unsynced:
        return Day(day, rows, f"{unsynced:,} rows are not in the lake: run penstock lake sync")
    if unverified:
        return Day(
            day,
            rows,
            f"{unverified:,} rows are not verified in each lake: run penstock lake verify",
        )
    if unread:
        return Day(day, rows, f"{unread:,} rows are not read yet by {_slowest(books)}")
    for file in books.files():
        if file.day == day and (problem := problem_with(folder, file)):
            return Day(day, rows, f"{file.path} is damaged ({problem}): run penstock lake verify")
    return Day(day, rows, None)


def _slowest(books: Books) -> str:
    return str(books.ask("readers")[0][0])
