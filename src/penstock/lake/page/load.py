"""Sections about time: where each queue stands, how much, how long, how deep."""

from .facts import Facts, Row
from .pieces import Head, badge, grid, section, table
from .plots import Series, timeline
from .words import length, number, text


def tiles(facts: Facts) -> str:
    """One a queue: where it stands now."""
    burn = {r["queue"]: r for r in facts.rows("slo") if r["window_hours"] == 1}
    rows = sorted(facts.rows("outlook"), key=lambda row: (-row["waiting"], row["queue"]))
    return f'<div class="tiles">{"".join(_tile(facts, row, burn.get(row["queue"])) for row in rows)}</div>'


def _tile(facts: Facts, row: Row, slo: Row | None) -> str:
    rate = slo["burn"] if slo else None
    drains = row["drains_in_s"]
    stuck = row["waiting"] and (row["oldest_s"] or 0) > facts.objective.wait.total_seconds()
    tone = "bad" if stuck and drains is None else "warn" if stuck or (rate or 0) > 1 else "good"
    ends = (
        "nothing waits" if not row["waiting"] else "it grows" if drains is None else length(drains)
    )
    lines = (
        ("oldest", length(row["oldest_s"])),
        (
            "comes / starts per hour",
            f"{number(row['came_per_hour'])} / {number(row['started_per_hour'])}",
        ),
        ("drained in", ends),
        ("budget burns", "–" if rate is None else f"{number(rate)}×"),
        ("dead letters", number(row["dead"])),
    )
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in lines)
    return (
        f'<div class="tile {tone}"><h3>{text(row["queue"])}</h3><b>{number(row["waiting"])}</b>'
        f'<span class="unit">waiting</span><dl>{listed}</dl></div>'
    )


def waits(facts: Facts) -> str:
    goal = facts.objective.wait.total_seconds()
    times, figures = facts.timeline(), []
    for measure, name in (("wait", "waits"), ("run", "runs")):
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
        "Percentiles by hour, seconds on a logarithmic scale, merged from sketches that add up: each is within "
        "1 % of the exact one. Waiting counts from when a message was due.",
        grid(*figures),
    )


def flow(facts: Facts) -> str:
    times = facts.timeline()
    figures = [
        timeline(
            f"{queue}, attempts an hour",
            times,
            [
                Series("completed", facts.by_hour(facts.hours, queue, "completed"), "good"),
                Series("failing", facts.by_hour(facts.hours, queue, "failing"), "bad"),
            ],
            stacked=True,
        )
        for queue in facts.queues
    ]
    return section(
        "flow",
        "Throughput and outcomes",
        "Attempts that ended, by hour: completed, and those that failed (retried, given up, or the lease ran out).",
        grid(*figures),
    )


def depth(facts: Facts) -> str:
    times, figures = facts.timeline(), []
    for queue in facts.queues:
        waiting = facts.by_hour(facts.hours, queue, "waiting_peak")
        oldest = [(v or 0) / 60 for v in facts.by_hour(facts.hours, queue, "oldest_s")]
        figures.append(
            timeline(f"{queue}, most waiting", times, [Series("waiting", waiting, "one", True)])
        )
        figures.append(
            timeline(
                f"{queue}, age of the oldest",
                times,
                [Series("oldest", oldest, "two", True)],
                unit=" min",
            )
        )
    return section(
        "depth",
        "Depth and oldest age",
        "The most that was waiting at any five-minute border of the hour, and for how long the oldest of them.",
        grid(*figures),
        _live_check(facts),
    )


def _live_check(facts: Facts) -> str:
    """What the lake adds up to, against the queue's own counts at the same moment."""
    rows = []
    died: dict[str, int] = {}
    for letter in facts.rows("letters"):
        step = {"died": 1, "redriven": -1, "discarded": -1}.get(letter["event"], 0)
        died[letter["queue"]] = died.get(letter["queue"], 0) + step
    seen = {row["queue"]: row for row in facts.rows("outlook")}
    for queue, told in sorted(facts.live_numbers.items()):
        row = seen.get(queue, {})
        pairs = [
            ("waiting", row.get("waiting", 0), told.get("waiting", 0)),
            ("dead letters", died.get(queue, 0), told.get("dead", 0)),
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
        Head("what"),
        Head("from the history", True),
        Head("counted by the queue", True),
        Head(""),
    ]
    if not rows:
        return ""
    about = '<p class="none-said">The running sum of all transitions against the queue’s own counts at the last sync. Dead letters differ if some died before the history began.</p>'
    return about + table(heads, rows, "")
