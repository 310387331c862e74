"""Sections about load: the state of each queue, waiting times, throughput and depth."""

from .facts import Facts, Row
from .format import length, number, text
from .html import Head, badge, grid, section, table
from .plots import Series, timeline
from .verdict import Verdict


def tiles(facts: Facts, verdict: Verdict) -> str:
    """One for each queue: its state now, in the colour of its worst problem."""
    burn = {r["queue"]: r for r in facts.rows("slo") if r["window_hours"] == 1}
    rows = sorted(facts.rows("outlook"), key=lambda row: (-row["waiting"], row["queue"]))
    letters: dict[str, int] = {}
    for row in facts.rows("redrive"):
        letters[row["queue"]] = letters.get(row["queue"], 0) + row["letters"]
    cards = [
        _tile(
            row,
            burn.get(row["queue"]),
            verdict.level_of(row["queue"]),
            _dead(letters.get(row["queue"], 0), row["dead"]),
        )
        for row in rows
    ]
    return f'<div class="tiles">{"".join(cards)}</div>'


def _dead(known: int, live: int) -> str:
    """As the table of dead letters counts them, and as the queue does if that is another number."""
    return number(known) if known == live else f"{number(known)} (in the queue now: {number(live)})"


def _tile(row: Row, slo: Row | None, tone: str, dead: str) -> str:
    rate = slo["burn"] if slo else None
    drains = row["drains_in_s"]
    ends = (
        "nothing is waiting"
        if not row["waiting"]
        else "not at this pace"
        if drains is None
        else length(drains)
    )
    lines = (
        ("oldest waiting", length(row["oldest_s"])),
        (
            "arrivals / starts in the last hour",
            f"{number(row['came_per_hour'])} / {number(row['started_per_hour'])}",
        ),
        ("backlog gone in", ends),
        ("burn rate", "–" if rate is None else f"{number(rate)}×"),
        ("dead letters", dead),
    )
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in lines)
    return (
        f'<div class="tile {tone}"><h3>{text(row["queue"])}</h3><b>{number(row["waiting"])}</b>'
        f'<span class="unit">waiting</span><dl>{listed}</dl></div>'
    )


def waits(facts: Facts) -> str:
    goal = facts.objective.wait.total_seconds()
    times, figures = facts.timeline(), []
    for measure, name in (("wait", "waiting time"), ("run", "running time")):
        rows = [row for row in facts.percentiles if row["measure"] == measure]
        for queue in facts.queues:
            lines = [
                Series(p, facts.by_hour(rows, queue, p, None), tone)
                for p, tone in (("p50", "one"), ("p95", "two"), ("p99", "bad"))
            ]
            mark = (goal, f"objective {length(goal)}") if measure == "wait" else None
            figures.append(timeline(f"{queue} {name}", times, lines, unit="s", log=True, mark=mark))
    return section(
        "waits",
        "How long messages wait and run",
        "Percentiles by hour, in seconds on a logarithmic scale, each within 1 % of the exact value. "
        "Waiting counts from when a message was due.",
        grid(*figures),
    )


def flow(facts: Facts) -> str:
    times = facts.timeline()
    figures = [
        timeline(
            f"{queue}, attempts per hour",
            times,
            [
                Series("completed", facts.by_hour(facts.hours, queue, "completed"), "good"),
                Series("failed", facts.by_hour(facts.hours, queue, "failing"), "bad"),
            ],
        )
        for queue in facts.queues
    ]
    return section(
        "flow",
        "Throughput and outcomes",
        "Attempts that ended, by hour: completed, or failed (retried, given up, or the lease expired).",
        grid(*figures),
    )


def depth(facts: Facts) -> str:
    times, figures = facts.timeline(), []
    for queue in facts.queues:
        waiting = facts.by_hour(facts.hours, queue, "waiting_peak")
        oldest = [(v or 0) / 60 for v in facts.by_hour(facts.hours, queue, "oldest_s")]
        figures.append(
            timeline(f"{queue}, waiting", times, [Series("waiting", waiting, "one", True)])
        )
        figures.append(
            timeline(
                f"{queue}, age of the oldest waiting message",
                times,
                [Series("oldest", oldest, "two", True)],
                unit=" min",
            )
        )
    return section(
        "depth",
        "Queue depth and age",
        "The largest number of waiting messages in the hour, taken every five minutes, and how long the oldest had waited.",
        grid(*figures),
        _live_check(facts),
    )


def _live_check(facts: Facts) -> str:
    """The sums of the history against the queue's own counts at the same time."""
    rows = []
    died: dict[str, int] = {}
    for letter in facts.rows("letters"):
        step = {"died": 1, "redriven": -1, "discarded": -1}.get(letter["event"], 0)
        died[letter["queue"]] = died.get(letter["queue"], 0) + step
    seen = {row["queue"]: row for row in facts.rows("outlook")}
    for queue, counts in sorted(facts.live_counts.items()):
        row = seen.get(queue, {})
        pairs = [
            ("waiting", row.get("waiting", 0), counts.get("waiting", 0)),
            ("dead letters", died.get(queue, 0), counts.get("dead", 0)),
        ]
        for what, summed, live in pairs:
            fits = (
                badge("good", "agree")
                if summed == live
                else badge("warn", f"differ by {number(summed - live)}")
            )
            rows.append((queue, what, number(summed), number(live), fits))
    heads = [
        Head("queue"),
        Head("state"),
        Head("from the history", True),
        Head("counted by the queue", True),
        Head(""),
    ]
    if not rows:
        return ""
    about = '<p class="none-said">The sum of all transitions in the history against the queue’s own counts at the last sync. Dead letters differ if some died before the history began.</p>'
    return about + table(heads, rows, "")
