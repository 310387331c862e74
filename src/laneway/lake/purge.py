"""Deletes history from the database that is verified in the lake."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from laneway.client.sync.queue import Queue
from laneway.errors import DatabaseFailed

from .catalog import Catalog, DayCount
from .folder import Folder
from .verify import problem_with

Progress = Callable[[str], None]
_IDLE = 20
"""Calls of upkeep that counted nothing, for instance because somebody has an open transaction."""


@dataclass(frozen=True, slots=True)
class PurgeDay:
    """A day of history, and why it stays; None if it is, or would be, purged."""

    day: date
    rows: int
    stays: str | None


def purge(
    catalog: Catalog,
    folder: Folder,
    *,
    keep: timedelta,
    dry_run: bool = False,
    force: bool = False,
    say: Progress = lambda text: None,
) -> list[PurgeDay]:
    """Purges whole days (UTC) that ended more than ``keep`` ago. Their files are read again first:
    a file that was verified last week may have been damaged since. With ``force`` registered
    streams that have not read them are not waited for: they fail when they go on."""
    before = catalog.ended_before(keep)
    days = [_check(catalog, folder, row, before) for row in catalog.days(force)]
    if dry_run:
        return days
    uncounted = count_minutes(catalog, before)
    done = []
    for day in days:
        if day.stays is None and uncounted is not None and day.day >= uncounted:
            day = PurgeDay(day.day, day.rows, "upkeep has not counted it into the minutes yet")
        if day.stays is None:
            deleted = catalog.purge_day(day.day, force)
            busy = "it is being read, or has changed: try again"
            day = PurgeDay(day.day, day.rows, busy if deleted is None else None)
            say(f"{day.day}: {day.rows:,} rows {'kept' if day.stays else 'purged'}")
        done.append(day)
    catalog.mark_purged()
    return done


def count_minutes(catalog: Catalog, before: date) -> date | None:
    """Lets upkeep count what is to be purged into the minutes, which it could not do afterwards.
    The first day that it could not count; None if there is none."""
    last: datetime | None = None
    idle = 0
    with Queue(catalog.address.url, schema=catalog.address.schema, upkeep_every=None) as queue:
        while (found := catalog.uncounted(before)) is not None and idle < _IDLE:
            idle = idle + 1 if found == last else 0
            last = found
            try:
                queue.upkeep()
            except DatabaseFailed:  # it needs more rights than the lake may have
                break
    return None if found is None else found.astimezone(UTC).date()


def _check(catalog: Catalog, folder: Folder, row: DayCount, before: date) -> PurgeDay:
    day, rows, unsynced, unverified, unread = row
    if day >= before:
        return PurgeDay(day, rows, f"newer than the retention ({before} and later)")
    if unsynced:
        return PurgeDay(day, rows, f"{unsynced:,} rows are not in the lake: run laneway lake sync")
    if unverified:
        return PurgeDay(
            day,
            rows,
            f"{unverified:,} rows are not verified in every lake: run laneway lake verify",
        )
    if unread:
        return PurgeDay(day, rows, f"{unread:,} rows have not been read by {_slowest(catalog)}")
    for file in catalog.files():
        if file.day == day and (problem := problem_with(folder, file)):
            return PurgeDay(
                day, rows, f"{file.path} is damaged ({problem}): run laneway lake verify"
            )
    return PurgeDay(day, rows, None)


def _slowest(catalog: Catalog) -> str:
    """Of those that are waited for."""
    slowest = next(iter(catalog.readers()))
    until = f"{slowest.waited_until.astimezone(UTC):%Y-%m-%d %H:%M}"
    return f"stream {slowest.name}, for which they are kept until {until} UTC"
