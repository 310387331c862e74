"""Sections about failures, dead letters, crashes, and work that was done twice."""

from collections import defaultdict
from datetime import datetime, timedelta

from .facts import Facts, Row
from .html import Head, Html, badge, clock, code, dim, number, section, table, text
from .plots import spark

RECENT = timedelta(hours=6)
"""A failure that was seen within this time goes on (see ``redrive`` in ``summaries.sql``)."""

_TONES = {"redrive": "good", "fix first": "warn", "discard": "bad", "nothing left": "none"}


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
        Head("total", True),
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
        "What fails, and what is new",
        "One line for each defect: the type of the error, the innermost frame of your own code, and the text without numbers.",
        table(heads, lines, "Nothing has failed."),
    )


def letters(facts: Facts) -> str:
    rows = sorted(
        facts.rows("redrive"), key=lambda r: (list(_TONES).index(r["advice"]), -r["letters"])
    )
    heads = [
        Head("advice"),
        Head("last error"),
        Head("where"),
        Head("dead letters", True),
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
            _why(r, facts.now),
        )
        for r in rows
    ]
    return section(
        "letters",
        "Dead letters: redrive, fix first, or discard",
        "By their last error, with what happened to those that were redriven before.",
        table(heads, lines, "There are no dead letters."),
    )


def _why(row: Row, now: datetime) -> str:
    if row["letters"] == 0:
        return "all of them were redriven or discarded"
    if row["advice"] == "discard":
        return "most of those that were redriven died again"
    if row["type"] == "LeaseExpired":
        return "it ran longer than its lease, or crashed its workers"
    if row["advice"] == "redrive":
        return f"not seen since {clock(row['last_at'])}; {number(row['completed_since'])} of this kind completed since"
    if row["last_at"] > now - RECENT or not row["completed_since"]:
        return f"it still fails: last seen {clock(row['last_at'])}"
    return "the same code fails again: mend it, redrive one, then the others"


def crashes(facts: Facts) -> str:
    # The worst first; of equal ones the latest.
    rows = sorted(facts.rows("crashes"), key=lambda r: (r["expired"], r["last_at"]), reverse=True)[
        :12
    ]
    heads = [
        Head("message", True),
        Head("where"),
        Head("channel"),
        Head("expired leases", True),
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
        "Which messages crash workers",
        "Expired leases: the worker died, or the work took longer than its lease and the lease was not extended.",
        table(heads, lines, "No lease has expired."),
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
        "again": "attempts after an expired lease (the work may have been done twice)",
        "stale": "results refused because the lease was lost",
        "stale_complete": "of those, completions: the work was done, and done again by another worker",
        "twice": "messages that ended twice (must be 0)",
    }
    lines = [
        (
            said[name],
            number(sum(sums[name].values())),
            Html(spark([sums[name][day] for day in days], "warn")),
        )
        for name in said
    ]
    heads = [Head("duplicates and late results"), Head("total", True), Head("by day")]
    return "<p></p>" + table(heads, lines, "")


def _days(facts: Facts) -> list[object]:
    last = facts.now.date()
    return [last - timedelta(days=n) for n in range(13, -1, -1)]


def _signature(row: Row) -> tuple[str, ...]:
    return row["queue"], row["kind"], row["type"], row["frame"], row["text"]
