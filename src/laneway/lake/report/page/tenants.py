"""Sections about tenants: fairness, cost, attempts, and unusual hours."""

from collections import defaultdict
from datetime import timedelta

from .facts import Facts, Row
from .html import Head, clock, grid, length, number, percent, section, size, table
from .plots import Series, bars, heat, timeline


def fairness(facts: Facts) -> str:
    times, figures = facts.timeline(), []
    for queue in facts.queues:
        rows = facts.fairness
        lines = [
            Series("top channel’s share", facts.by_hour(rows, queue, "top_share", None), "two"),
            Series("Jain’s index", facts.by_hour(rows, queue, "jain", None), "good"),
        ]
        figures.append(timeline(f"{queue}, shares", times, lines))
        quiet = Series("p95", facts.by_hour(rows, queue, "quiet_p95", None), "one")
        figures.append(
            timeline(f"{queue}, p95 wait of the quiet channels", times, [quiet], unit="s", log=True)
        )
    return section(
        "fairness",
        "Do tenants get fair shares",
        "Jain’s index of the channels that had a backlog at the same time (1 means equal shares; a gap means that fewer than two "
        "had one), the busiest channel’s share of all starts, and the waiting time of quiet channels (with less than an equal share).",
        grid(*figures),
    )


def tries(facts: Facts) -> str:
    count: dict[int, int] = defaultdict(int)
    for row in facts.rows("tries"):
        count[min(row["attempt"], 8)] += row["completed"]
    whole = sum(count.values()) or 1
    names = [f"attempt {n}" if n < 8 else "8 or more" for n in sorted(count)]
    values = [float(count[n]) for n in sorted(count)]
    shown = [f"{number(v)} ({percent(v / whole)})" for v in values]
    drawn = (
        bars("Completed at", names, values, shown, "good")
        if values
        else '<p class="none-said">Nothing has been completed.</p>'
    )
    return section(
        "tries",
        "How many attempts until success",
        "Each step of deferred work counts as an attempt.",
        grid(drawn),
    )


def tenants(facts: Facts) -> str:
    since = facts.now.date() - timedelta(days=7)
    cost: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for row in facts.rows("tenants"):
        if row["day"] >= since:
            for place, name in enumerate(("run_s", "wasted_s", "bytes", "starts")):
                cost[row["channel"]][place] += row[name]
    whole = sum(c[0] for c in cost.values()) or 1.0
    top = sorted(cost.items(), key=lambda item: -item[1][0])[:14]
    drawn = (
        bars(
            "Worker time, 7 days",
            [name for name, _ in top],
            [c[0] for _, c in top],
            [f"{length(c[0])} · {percent(c[0] / whole)}" for _, c in top],
        )
        if top
        else '<p class="none-said">Nothing has run.</p>'
    )
    heads = [
        Head("tenant"),
        Head("attempts", True),
        Head("worker time", True),
        Head("wasted on failures", True),
        Head("payload", True),
    ]
    lines = [
        (name, number(c[3]), length(c[0]), percent(c[1] / c[0]) if c[0] else "–", size(c[2]))
        for name, c in top
    ]
    return section(
        "tenants",
        "What each tenant costs",
        "Worker time that the attempts of a channel took, and how much of it was spent on failures.",
        grid(drawn, table(heads, lines, "Nothing has run.")),
    )


def normal(facts: Facts) -> str:
    rows = facts.rows("normal")
    hours = sorted({r["hour"] for r in rows})[-24:]
    seen = {(r["queue"], r["metric"], r["hour"]): r for r in rows}
    lines = []
    for queue in facts.queues:
        for metric in ("came", "completed", "failing share", "p95 wait"):
            cells = [_cell(seen.get((queue, metric, hour))) for hour in hours]
            lines.append((f"{queue}, {metric}", cells))
    drawn = (
        heat("The last 24 hours, by hour of the day (UTC)", lines, [f"{hour:%H}" for hour in hours])
        if hours
        else '<p class="none-said">This needs three days of history.</p>'
    )
    return section(
        "normal",
        "Is this normal for the hour of the week",
        "Each hour against the median of the same hours before (of the week if there are three, else of the day). "
        "Red: unusual, and worse. Yellow: unusual, but not worse. Grey: usual, or not enough history.",
        grid(drawn),
    )


def _cell(row: Row | None) -> tuple[str, str]:
    if row is None:
        return "none", "no data"
    shown = (
        length if row["metric"] == "p95 wait" else percent if "share" in row["metric"] else number
    )
    said = f"{row['queue']}, {row['metric']} at {clock(row['hour'])}: {shown(row['value'])}, usual {shown(row['usual'])} ({row['verdict']})"
    worse = {"came": "low", "completed": "low"}.get(row["metric"], "high")
    if row["verdict"] in ("usual", "too little known"):
        return "none", said
    return ("bad" if row["verdict"] == worse else "warn"), said
