"""Sections about capacity: the objective, how many workers are needed, and the forecast."""

from .facts import Facts, Row
from .format import length, number, percent
from .html import Head, badge, grid, section, table
from .plots import Series, timeline


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
