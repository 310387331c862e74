"""What is wrong, if anything, in three sentences for somebody who was woken."""

from dataclasses import dataclass
from datetime import timedelta

from .facts import Facts, Row
from .words import clock, length, number, percent

_OLD = 300.0
_BURNING = 14.4
"""At this pace a month's error budget is gone in two days: the usual line for waking somebody."""


@dataclass(frozen=True, slots=True)
class Problem:
    """``weight`` orders them: the heaviest is named first."""

    weight: float
    says: str
    do: str
    urgent: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    level: str
    sentences: tuple[str, str, str]
    problems: tuple[Problem, ...]


def judge(facts: Facts) -> Verdict:
    if facts.empty:
        return Verdict("quiet", _NOTHING, ())
    found = [*_stuck(facts), *_burning(facts), *_new(facts), *_poison(facts), *_odd(facts)]
    found += [*_letters(facts), *_broken(facts)]
    problems = tuple(sorted(found, key=lambda problem: -problem.weight))
    urgent = any(problem.urgent for problem in problems)
    level = "bad" if urgent else "warn" if problems else "good"
    return Verdict(level, (_state(facts), *_worst(problems)), problems)


_NOTHING = (
    "There is no history in this lake yet.",
    "Nothing can be said about it, good or bad.",
    "Run penstock lake sync once messages have been worked on.",
)


def _state(facts: Facts) -> str:
    rows = facts.rows("outlook")
    waiting = sum(row["waiting"] for row in rows)
    oldest = max((row["oldest_s"] or 0 for row in rows), default=0)
    day = [row for row in facts.hours if row["hour"] >= facts.now - timedelta(hours=24)]
    done = sum(row["completed"] for row in day)
    begin = f"{number(done)} messages were completed in the 24 hours before {clock(facts.now)} UTC"
    if not waiting:
        return f"{begin}, and nothing is waiting."
    return f"{begin}; {number(waiting)} are waiting, the oldest for {length(oldest)}."


def _worst(problems: tuple[Problem, ...]) -> tuple[str, str]:
    if not problems:
        return (
            "Nothing is wrong that this report knows how to see.",
            "Nobody needs to do anything.",
        )
    more = len(problems) - 1
    also = f" ({more} more below.)" if more else ""
    return problems[0].says, problems[0].do + also


def _stuck(facts: Facts) -> list[Problem]:
    found = []
    for row in facts.rows("outlook"):
        if row["waiting"] == 0 or (row["oldest_s"] or 0) < _OLD:
            continue
        drains = row["drains_in_s"]
        pace = f"{number(row['came_per_hour'])} come and {number(row['started_per_hour'])} start an hour"
        end = "it does not shrink" if drains is None else f"it is gone in {length(drains)}"
        says = (
            f"Queue {row['queue']} is behind: {number(row['waiting'])} waiting, the oldest for "
            f"{length(row['oldest_s'])}, and at this pace ({pace}) {end}."
        )
        room = max(row["slots_needed"], row["slots"] + 1)
        do = (
            f"Look for what slows {row['queue']} down (its run times below); if it is only load, "
            f"let {number(room)} run at once instead of {number(row['slots'])}."
        )
        found.append(Problem(100 + row["oldest_s"] / 60, says, do, drains is None))
    return found


def _burning(facts: Facts) -> list[Problem]:
    windows: dict[str, dict[int, Row]] = {}
    for row in facts.rows("slo"):
        windows.setdefault(row["queue"], {})[row["window_hours"]] = row
    found = []
    for queue, seen in windows.items():
        hour, six = seen.get(1), seen.get(6)
        if hour and six and hour["late"] >= 5 and min(hour["burn"], six["burn"]) > 1:
            says = (
                f"Queue {queue} misses its objective: {percent(hour['late_share'])} of the last hour's "
                f"starts were later than {length(facts.objective.wait.total_seconds())}, "
                f"{number(hour['burn'])} times what the budget allows."
            )
            do = f"See when {queue} began to wait, and which channels have the backlog."
            found.append(Problem(60 + min(hour["burn"], 39), says, do, hour["burn"] > _BURNING))
    return found


def _new(facts: Facts) -> list[Problem]:
    fresh = [row for row in facts.rows("signatures") if row["is_new"] and row["n"] >= 3]
    return [
        Problem(
            40 + row["n"] / 10,
            f"A failure that was never seen before: {row['type']} in {row['queue']}/{row['kind'] or '(no kind)'}, "
            f"{number(row['n'])} times since {clock(row['first_at'])}.",
            _LOST
            if row["type"] == "LeaseExpired"
            else f"Ask what was released shortly before {clock(row['first_at'])} UTC, and roll it back if it fits.",
            row["dead"] > 0,
        )
        for row in fresh
    ]


_LOST = "See below on which workers: they died, or the work takes longer than its lease."


def _poison(facts: Facts) -> list[Problem]:
    since = facts.now - timedelta(hours=24)
    rows = [r for r in facts.rows("crashes") if r["expired"] >= 2 and r["last_at"] >= since]
    if not rows:
        return []
    worst = max(rows, key=lambda row: row["expired"])
    says = (
        f"Message {worst['message_id']} ({worst['queue']}/{worst['kind']}, {worst['channel']}) ended "
        f"{worst['expired']} leases on {worst['workers']} workers: it probably kills them."
    )
    do = "It becomes a dead letter by itself; read its payload before anybody redrives it."
    return [Problem(30 + worst["expired"], says, do, False)]


def _odd(facts: Facts) -> list[Problem]:
    since = facts.now - timedelta(hours=3)
    rows = [
        r for r in facts.rows("normal") if r["verdict"] in ("high", "low") and r["hour"] >= since
    ]
    rows = [r for r in rows if (r["metric"], r["verdict"]) in _WORRYING]
    if not rows:
        return []
    row = max(
        rows,
        key=lambda r: abs(r["value"] - r["usual"]) / (r["deviation"] + 0.3 * r["usual"] + 1e-3),
    )
    what = _WORRYING[row["metric"], row["verdict"]]
    shown = (
        length if row["metric"] == "p95 wait" else percent if "share" in row["metric"] else number
    )
    says = (
        f"Not normal for this hour: {what} in {row['queue']} at {clock(row['hour'])}, "
        f"{shown(row['value'])} where {shown(row['usual'])} is usual."
    )
    return [
        Problem(
            20,
            says,
            "See the hours below; a quiet producer is as suspicious as a slow worker.",
            False,
        )
    ]


_WORRYING = {
    ("came", "low"): "too little work comes",
    ("came", "high"): "a lot of work comes",
    ("completed", "low"): "too little is completed",
    ("failing share", "high"): "too much fails",
    ("p95 wait", "high"): "messages wait too long",
}


def _letters(facts: Facts) -> list[Problem]:
    ready = [row for row in facts.rows("redrive") if row["advice"] == "redrive" and row["letters"]]
    count = sum(row["letters"] for row in ready)
    if not count:
        return []
    says = f"{number(count)} dead letters can be redriven: what killed them has stopped."
    return [Problem(10, says, "See the advice below, then penstock dead redrive.", False)]


def _broken(facts: Facts) -> list[Problem]:
    twice = sum(row["twice"] for row in facts.rows("repeats"))
    if not twice:
        return []
    says = f"{number(twice)} messages ended twice, which must not happen."
    return [
        Problem(
            1000, says, "Keep this lake and report it: a promise of the queue was broken.", True
        )
    ]
