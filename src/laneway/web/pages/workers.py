"""Workers: which processes live, what they serve, how busy they are."""

from typing import Any

from laneway.web.context import Context, PageView

_ORDER = {"vanished": 0, "stopping": 1, "running": 2}


def workers(context: Context) -> PageView:
    rows: list[Any] = sorted(
        context.read("workers"), key=lambda row: (_ORDER[row.state], row.host, row.pid)
    )
    alive = [row for row in rows if row.state == "running"]
    values = {
        "rows": rows[:500],
        "cut": len(rows) > 500,
        "alive": len(alive),
        "slots": sum(row.slots for row in alive),
        "used": sum(row.used for row in alive),
    }
    return PageView("workers.html", "Workers", values)
