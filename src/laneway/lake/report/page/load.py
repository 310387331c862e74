"""Sections about load: the state of each queue, waiting times, throughput and depth; and about
capacity: the objective, how many workers are needed, and the forecast.
"""

from .facts import Facts, Row
from .html import Head, badge, grid, length, number, percent, section, table, text
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


def slo(facts: Facts) -> str:
    goal = f"{percent(facts.objective.share)} of attempts start within {length(facts.objective.wait.total_seconds())} of being due"
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
        "Is the objective met",
        f"Objective: {goal}. Burn rate 1 uses up the error budget exactly; 14 uses up a month’s budget in two days.",
        table(heads, rows, "Nothing has started yet."),
    )


def _burn(row: Row | None) -> object:
    if row is None or row["burn"] is None:
        return "–"
    tone = "good" if row["burn"] <= 1 else "warn" if row["burn"] <= 6 else "bad"
    return badge(tone, f"{number(row['burn'])}×")


def capacity(facts: Facts) -> str:
    times = facts.timeline()
    figures = [
        timeline(
            f"{queue}, running at the same time",
            times,
            [
                Series("peak", facts.by_hour(facts.hours, queue, "running_peak"), "two"),
                Series("average", facts.by_hour(facts.hours, queue, "mean_running"), "one", True),
            ],
        )
        for queue in facts.queues
    ]
    heads = [
        Head("queue"),
        Head("best hour", True),
        Head("peak running", True),
        Head("workers", True),
        Head("utilisation now", True),
        Head("needed at 70 %", True),
        Head("Little’s law: running", True),
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
        "Needed: enough for the busiest hour at 70 % utilisation. Little’s law (rate × mean time = mean number) divided by the "
        "observed mean of the last 24 hours should be 1.00; anything else means that the history is incomplete.",
        grid(*figures),
        table(heads, rows, "No queue has processed anything yet."),
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
        "When will the backlog be gone, and what comes tomorrow",
        "Expected arrivals per hour (the median of the same hours before) against the best hour of the last week. The backlog "
        "is what would be left if the workers kept that pace.",
        grid(*figures) if figures else '<p class="none-said">There is not enough history yet.</p>',
    )
