"""Sections about who and what: tenants, failures, dead letters, crashes, what is unusual."""

from collections import defaultdict
from datetime import timedelta

from .facts import Facts, Row
from .pieces import Head, Html, badge, code, dim, grid, section, table
from .plots import Series, bars, heat, spark, timeline
from .words import clock, length, number, percent, size, text

_TONES = {"redrive": "good", "fix first": "warn", "discard": "bad", "nothing left": "none"}


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
        "Is it fair between tenants",
        "Jain’s index among the channels that had a backlog at the same time (1 is equal shares; gaps: no two had one), the "
        "busiest channel’s share of all starts, and how long the quiet ones (less than an equal share) waited.",
        grid(*figures),
    )


def failures(facts: Facts) -> str:
    days = _days(facts)
    count: dict[tuple[str, ...], dict[object, int]] = defaultdict(dict)
    for row in facts.rows("failures"):
        count[_signature(row)][row["day"]] = row["n"]
    rows = sorted(facts.rows("signatures"), key=lambda r: (not r["is_new"], -r["today"], -r["n"]))[
        :25
    ]
    heads = [
        Head("failure"),
        Head("where"),
        Head(""),
        Head("by day"),
        Head("today", True),
        Head("in all", True),
        Head("dead", True),
        Head("first seen"),
        Head("last seen"),
    ]
    lines = [
        (
            Html(
                f"<b>{text(r['type'])}</b> {code(r['frame']) if r['frame'] else ''}<br>{dim(r['text'])}"
            ),
            f"{r['queue']}/{r['kind']}",
            badge("bad", "new") if r["is_new"] else "",
            Html(spark([count[_signature(r)].get(day, 0) for day in days])),
            number(r["today"]),
            number(r["n"]),
            number(r["dead"]),
            clock(r["first_at"]),
            clock(r["last_at"]),
        )
        for r in rows
    ]
    return section(
        "failures",
        "What fails, and is it new",
        "The same defect has one line: the error’s type, the innermost frame of your own code, and its text without numbers.",
        table(heads, lines, "Nothing has failed."),
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
        else '<p class="none-said">Nothing was completed.</p>'
    )
    return section(
        "tries",
        "How many attempts until success",
        "Deferred work counts an attempt for each step.",
        grid(drawn),
    )


def letters(facts: Facts) -> str:
    rows = sorted(
        facts.rows("redrive"), key=lambda r: (list(_TONES).index(r["advice"]), -r["letters"])
    )
    heads = [
        Head("advice"),
        Head("what killed them"),
        Head("where"),
        Head("letters", True),
        Head("oldest"),
        Head("earlier redrives"),
        Head("why"),
    ]
    lines = [
        (
            badge(_TONES[r["advice"]], r["advice"]),
            Html(
                f"<b>{text(r['type'])}</b> {code(r['frame']) if r['frame'] else ''}<br>{dim(r['text'])}"
            ),
            f"{r['queue']}/{r['kind']}",
            number(r["letters"]),
            clock(r["oldest"]),
            f"{r['recovered']} of {r['redriven']} recovered, {r['died_again']} died again"
            if r["redriven"]
            else "none",
            _why(r),
        )
        for r in rows
    ]
    return section(
        "letters",
        "Dead letters: redrive, fix first, or discard",
        "By what killed them last, and what happened to those that were redriven before.",
        table(heads, lines, "There are no dead letters."),
    )


def _why(row: Row) -> str:
    if row["letters"] == 0:
        return "all were redriven or discarded"
    if row["advice"] == "discard":
        return "most that were redriven died again"
    if row["type"] == "LeaseExpired":
        return "it outlived its leases or killed its workers"
    if row["advice"] == "redrive":
        return f"not seen since {clock(row['last_at'])}; {number(row['completed_since'])} of the kind completed since"
    return f"still fails: last seen {clock(row['last_at'])}"


def crashes(facts: Facts) -> str:
    rows = sorted(facts.rows("crashes"), key=lambda r: (-r["expired"], -r["message_id"]))[:12]
    heads = [
        Head("message", True),
        Head("where"),
        Head("channel"),
        Head("leases that ran out", True),
        Head("workers"),
        Head("last"),
        Head(""),
    ]
    lines = [
        (
            str(r["message_id"]),
            f"{r['queue']}/{r['kind']}",
            r["channel"],
            number(r["expired"]),
            ", ".join(r["worker_names"]),
            clock(r["last_at"]),
            badge("bad", "suspected poison")
            if r["expired"] > 1 and r["workers"] > 1
            else badge("none", "once"),
        )
        for r in rows
    ]
    return section(
        "crashes",
        "Who crashes workers",
        "Leases that ran out: the worker died, or the work took longer than its lease and nobody extended it.",
        table(heads, lines, "No lease has run out."),
        _repeats(facts),
    )


def _repeats(facts: Facts) -> str:
    days = _days(facts)
    names = ("stale", "stale_complete", "again", "twice")
    sums: dict[str, dict[object, int]] = {name: defaultdict(int) for name in names}
    for row in facts.rows("repeats"):
        for name, by_day in sums.items():
            by_day[row["day"]] += row[name]
    said = {
        "again": "attempts begun again after a lease ran out (the effect may have happened twice)",
        "stale": "writes refused by their fence",
        "stale_complete": "of those, completions: the work was done, and somebody else did it too",
        "twice": "messages that ended twice (must be none)",
    }
    lines = [
        (
            said[name],
            number(sum(sums[name].values())),
            Html(spark([sums[name][day] for day in days], "warn")),
        )
        for name in said
    ]
    heads = [Head("duplicates and late writers"), Head("in all", True), Head("by day")]
    return "<p></p>" + table(heads, lines, "")


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
        "The time of workers that a channel’s attempts took, and how much of it was for nothing.",
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
        else '<p class="none-said">Too little is known: this needs three days of history.</p>'
    )
    return section(
        "normal",
        "Is this normal for this hour of the week",
        "Each hour against the median of the same hours before (of the week if three are known, else of the day): "
        "red is far above in a bad way, or far below where less is bad; yellow is unusual; grey is usual or unknown.",
        grid(drawn),
    )


def _cell(row: Row | None) -> tuple[str, str]:
    if row is None:
        return "none", "nothing known"
    shown = (
        length if row["metric"] == "p95 wait" else percent if "share" in row["metric"] else number
    )
    said = f"{row['queue']}, {row['metric']} at {clock(row['hour'])}: {shown(row['value'])}, usual {shown(row['usual'])} ({row['verdict']})"
    worse = {"came": "low", "completed": "low"}.get(row["metric"], "high")
    if row["verdict"] in ("usual", "too little known"):
        return "none", said
    return ("bad" if row["verdict"] == worse else "warn"), said


def _days(facts: Facts) -> list[object]:
    last = facts.now.date()
    return [last - timedelta(days=n) for n in range(13, -1, -1)]


def _signature(row: Row) -> tuple[str, ...]:
    return row["queue"], row["kind"], row["type"], row["frame"], row["text"]
