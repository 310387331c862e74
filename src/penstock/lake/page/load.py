"""Sections about time: how much, how long, how deep, how many hands, what comes."""

from .facts import Facts, Row
from .pieces import Head, badge, grid, section, table
from .plots import Series, timeline
from .words import length, number, percent, text


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


def capacity(facts: Facts) -> str:
    times = facts.timeline()
    figures = [
        timeline(
            f"{queue}, running at once",
            times,
            [
                Series("most", facts.by_hour(facts.hours, queue, "running_peak"), "two"),
                Series(
                    "on average", facts.by_hour(facts.hours, queue, "mean_running"), "one", True
                ),
            ],
        )
        for queue in facts.queues
    ]
    heads = [
        Head("queue"),
        Head("best hour", True),
        Head("most at once", True),
        Head("workers", True),
        Head("in use now", True),
        Head("needed at 70 %", True),
        Head("Little’s law, running", True),
        Head("waiting", True),
    ]
    rows = [
        (
            r["queue"],
            f"{number(r['best_hour'])} started",
            number(r["slots"]),
            number(r["workers"]),
            percent(r["utilisation"]),
            number(r["slots_needed"]),
            *_little(facts, r["queue"]),
        )
        for r in facts.rows("outlook")
    ]
    return section(
        "capacity",
        "How many workers are needed",
        "Needed: the busiest hour’s work, at 70 % use. Little’s law (rate × mean time = mean number) is checked against the "
        "observed mean over the last 24 hours: 1.00 means that the history is complete.",
        grid(*figures),
        table(heads, rows, "No queue has worked yet."),
    )


def _little(facts: Facts, queue: str) -> tuple[str, str]:
    rows = sorted((r for r in facts.hours if r["queue"] == queue), key=lambda r: r["hour"])[-24:]
    answers = []
    for time, mean in (("mean_run_s", "mean_running"), ("mean_wait_s", "mean_waiting")):
        law = sum((r[time] or 0) * r["starts_ended"] for r in rows) / 3600
        seen = sum(r[mean] for r in rows)
        answers.append(f"{law / seen:.2f}" if seen else "–")
    return answers[0], answers[1]


def forecast(facts: Facts) -> str:
    rows = facts.rows("forecast")
    figures = []
    for queue in facts.queues:
        mine = sorted((r for r in rows if r["queue"] == queue), key=lambda r: r["hour"])
        if mine:
            lines = [
                Series("expected", [r["expected"] for r in mine], "one"),
                Series("best hour", [float(r["capacity"]) for r in mine], "good"),
                Series("backlog", [r["backlog"] for r in mine], "two", True),
            ]
            figures.append(
                timeline(
                    f"{queue}, the next 24 hours", [r["hour"] for r in mine], lines, ahead=True
                )
            )
    return section(
        "forecast",
        "When will it drain, and what will tomorrow’s backlog be",
        "What usually comes in each hour (the median of the same hours before), against the best hour of the last week; the "
        "backlog is what would be left if the workers kept that pace.",
        grid(*figures) if figures else '<p class="none-said">Too little is known.</p>',
    )


def slo(facts: Facts) -> str:
    goal = f"{percent(facts.objective.share)} of all starts within {length(facts.objective.wait.total_seconds())} of being due"
    seen = {(r["queue"], r["window_hours"]): r for r in facts.rows("slo")}
    heads = [
        Head("queue"),
        *(Head(f"last {h} h", True) for h in (1, 6, 24, 72)),
        Head("late in 72 h", True),
    ]
    rows = []
    for queue in facts.queues:
        cells = [_burn(seen.get((queue, h))) for h in (1, 6, 24, 72)]
        whole = seen.get((queue, 72))
        rows.append((queue, *cells, number(whole["late"]) if whole else "–"))
    return section(
        "slo",
        "Are we inside the objective",
        f"Objective: {goal}. A burn of 1 uses the budget up exactly; 14 uses a month’s in two days.",
        table(heads, rows, "Nothing has started yet."),
    )


def _burn(row: Row | None) -> object:
    if row is None or row["burn"] is None:
        return "–"
    tone = "good" if row["burn"] <= 1 else "warn" if row["burn"] <= 6 else "bad"
    return badge(tone, f"{number(row['burn'])}×")
