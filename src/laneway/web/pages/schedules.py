"""Schedules: the next tick, the last one, what went wrong; pause, run, remove."""

from laneway.schedule import Schedule
from laneway.web.context import PAGE_ROWS, Context, PageView
from laneway.web.cursors import read_cursor, write_cursor


def schedules(context: Context) -> PageView:
    after, queue = context.text("after"), context.text("queue")
    rows: list[Schedule] = context.read(
        "schedules",
        queue=queue,
        limit=PAGE_ROWS,
        after=read_cursor(Schedule, after) if after else None,
    )
    values = {
        "rows": rows,
        "queue": queue,
        "next": write_cursor(rows[-1]) if len(rows) == PAGE_ROWS else None,
    }
    return PageView("schedules.html", "Schedules", values)
