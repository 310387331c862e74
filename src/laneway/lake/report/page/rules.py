"""The rules of the verdict: which figures of a report are a problem. Pure functions, no Spark.

A false alarm costs as much as a missed one, so each rule asks for a number and for a share, and a
failure that has been usual for days is none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Protocol

from laneway.lake.report.tables import Objective

from .html import clock, length, number, percent

Row = dict[str, Any]

OLD = 300.0
"""Seconds after which a waiting message makes its queue late."""

BURNING = 14.4
"""At this rate a month's error budget is gone in two days: the usual threshold for a page."""

_DAY = timedelta(hours=24)


class Figures(Protocol):
    """The tables of a report, as of ``now``."""

    @property
    def now(self) -> datetime: ...
    @property
    def objective(self) -> Objective: ...
    def rows(self, table: str) -> list[Row]: ...


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem with the largest ``weight`` comes first. ``queue`` is None if it is of all."""

    weight: float
    says: str
    do: str
    urgent: bool
    queue: str | None = None


def problems(figures: Figures) -> tuple[Problem, ...]:
    found: list[Problem] = []
    for rule in _RULES:
        found += rule(figures)
    return tuple(sorted(found, key=lambda problem: (not problem.urgent, -problem.weight)))


# What fails.


@dataclass(frozen=True, slots=True)
class _Ended:
    """Attempts of the last 24 hours, and of the last 60 minutes (``last_*``)."""

    completed: int
    failing: int
    died: int
    last_completed: int
    last_failing: int

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "_Ended":
        rows = list(rows)
        return cls(*(sum(row[name] for row in rows) for name in cls.__slots__))

    @property
    def share(self) -> float:
        return self.failing / max(self.completed + self.failing, 1)

    @property
    def died_share(self) -> float:
        return self.died / max(self.completed + self.died, 1)

    @property
    def last_share(self) -> float:
        return self.last_failing / max(self.last_completed + self.last_failing, 1)

    @property
    def goes_on(self) -> bool:
        """It failed in the last 60 minutes, or nothing has succeeded since it failed."""
        return self.last_failing > 0 or not self.last_completed


def failing(figures: Figures) -> list[Problem]:
    found = []
    for queue, rows in _by_queue(figures.rows("recent")).items():
        whole = _Ended.of(rows)
        tenants = _failing_tenants(rows)
        level = _rate_failing(whole, _usual_share(figures, queue))
        if tenants:
            few = _Ended.of(tenants)
            found.append(_of_tenants(figures, queue, tenants, few, whole))
        elif level:
            found.append(_of_queue(figures, queue, whole, level == "bad"))
    return found


def _rate_failing(ended: _Ended, before: float | None) -> str:
    usual = before or 0.0
    attempts = ended.completed + ended.failing
    last = ended.last_completed + ended.last_failing
    unusual = max(0.2, 2 * usual)
    if attempts >= 3 and not ended.completed:
        return "bad" if ended.died or usual < 0.5 else "warn"
    if last >= 10 and ended.last_share >= max(0.5, 1.5 * usual):
        return "bad"
    if ended.last_failing >= 10 and before is not None and ended.last_share >= max(0.25, 5 * usual):
        return "bad"
    if ended.died >= 3 and ended.died_share >= 0.1:
        return "bad" if ended.goes_on else "warn"
    if attempts >= 20 and ended.share >= max(0.5, 1.5 * usual):
        return "bad" if ended.goes_on else "warn"
    if ended.died and ended.died_share >= (0.01 if ended.died >= 3 else 0.1):
        return "warn"
    if (attempts >= 20 and ended.share >= unusual) or (last >= 20 and ended.last_share >= unusual):
        return "warn"
    return ""


def _usual_share(figures: Figures, queue: str) -> float | None:
    """The share of failing attempts before the last 24 hours; None if too little is known."""
    rows = [
        row
        for row in figures.rows("hours")
        if row["queue"] == queue and row["hour"] < figures.now - _DAY - timedelta(hours=1)
    ]
    ended = sum(row["completed"] + row["failing"] for row in rows)
    return float(sum(row["failing"] for row in rows) / ended) if ended >= 100 else None


def _failing_tenants(rows: Sequence[Row]) -> list[Row]:
    """The few channels that fail while the others of their queue do not."""
    bad = [row for row in rows if row["failing"] >= 5 and _Ended.of([row]).share >= 0.5]
    rest = _Ended.of(row for row in rows if row not in bad)
    few = 0 < len(bad) <= max(3, len(rows) // 10) and len(bad) < len(rows)
    return bad if few and rest.completed and rest.share < 0.1 and not rest.died else []


def _of_tenants(
    figures: Figures, queue: str, rows: Sequence[Row], few: _Ended, whole: _Ended
) -> Problem:
    names = ", ".join(row["channel"] for row in sorted(rows, key=lambda row: -row["failing"]))
    verb = "fails" if len(rows) == 1 else "fail"
    says = (
        f"Only {names} {verb} in queue {queue}: {_counts(few)} in 24 hours; the other tenants' "
        "messages are completed."
    )
    urgent = few.goes_on and (few.died > 0 or few.failing >= 20)
    return Problem(70 + 20 * few.share, says, _mend(figures, queue), urgent, queue)


def _of_queue(figures: Figures, queue: str, ended: _Ended, urgent: bool) -> Problem:
    over = "" if ended.goes_on else " It did not happen in the last hour."
    last = ended.last_completed + ended.last_failing
    recent = (
        f" In the last hour {percent(ended.last_share)} of {number(last)} attempts failed."
        if last >= 10 and ended.last_share > 1.2 * ended.share
        else ""
    )
    says = f"Queue {queue} fails: {_counts(ended)} in 24 hours.{recent}{over}"
    share = max(ended.share, ended.last_share, ended.died_share)
    return Problem(80 + 100 * share, says, _mend(figures, queue), urgent, queue)


def _counts(ended: _Ended) -> str:
    attempts = ended.completed + ended.failing
    failed = f"{number(ended.failing)} of {number(attempts)} attempts failed"
    if not ended.died:
        return failed
    whole = ended.completed + ended.died
    return f"{failed}, and {number(ended.died)} of {number(whole)} messages died,"


def _mend(figures: Figures, queue: str) -> str:
    rows = [
        row
        for row in figures.rows("signatures")
        if row["queue"] == queue and row["last_at"] >= figures.now - _DAY
    ]
    if not rows:
        return "See below what fails, and mend it before you redrive."
    worst = max(rows, key=lambda row: (row["today"] + row["yesterday"], row["last_at"]))
    return (
        f"Mend {worst['type']} first (seen since {clock(worst['first_at'])} UTC, see below); "
        "then redrive one dead letter, and the others if it succeeds."
    )


def new_failures(figures: Figures) -> list[Problem]:
    attempts = {
        queue: sum(row["completed"] + row["failing"] for row in rows)
        for queue, rows in _by_queue(figures.rows("recent")).items()
    }
    return [
        Problem(
            40 + min(row["n"] / 10, 20),
            f"There is a new failure: {row['type']} in {row['queue']}/{row['kind'] or '(no kind)'}, "
            f"{number(row['n'])} times since {clock(row['first_at'])}.",
            f"Check what was deployed shortly before {clock(row['first_at'])} UTC, and roll it back if that is the cause.",
            bool(row["dead"])
            and row["n"] >= 0.05 * attempts.get(row["queue"], 0)
            and row["last_at"] >= figures.now - timedelta(hours=1),
            row["queue"],
        )
        for row in figures.rows("signatures")
        if row["is_new"] and row["n"] >= 3 and row["type"] != "LeaseExpired"
    ]


# What waits.


def behind(figures: Figures) -> list[Problem]:
    found = []
    for row in figures.rows("outlook"):
        if row["waiting"] == 0 or (row["oldest_s"] or 0) < OLD:
            continue
        drains = row["drains_in_s"]
        stands = not row["started_per_hour"]
        says = _stalled(row) if stands else _slow(row)
        room = max(row["slots_needed"], row["slots"] + 1)
        do = (
            f"Check whether workers of {row['queue']} run, and whether it or its channels are paused or limited."
            if stands
            else f"Find out what slows {row['queue']} down (see its running times below); if it is only load, "
            f"raise the concurrency from {number(row['slots'])} to {number(room)}."
        )
        says += _whose(figures, row)
        weight = (150 if stands else 100) + min(row["oldest_s"] / 60, 1000)
        found.append(Problem(weight, says, do, drains is None, row["queue"]))
    return found


def _stalled(row: Row) -> str:
    return (
        f"Queue {row['queue']} stands still: {number(row['waiting'])} waiting, the oldest for "
        f"{length(row['oldest_s'])}, and nothing started in the last hour."
    )


def _slow(row: Row) -> str:
    drains = row["drains_in_s"]
    pace = (
        f"{number(row['came_per_hour'])} arrive and {number(row['started_per_hour'])} start an hour"
    )
    end = (
        "the backlog does not shrink"
        if drains is None
        else f"the backlog is gone in {length(drains)}"
    )
    return (
        f"Queue {row['queue']} is behind: {number(row['waiting'])} waiting, the oldest for "
        f"{length(row['oldest_s'])}, and at this pace ({pace}) {end}."
    )


def _whose(figures: Figures, row: Row) -> str:
    """Names the channel that most of the waiting messages are of."""
    mine = [r for r in figures.rows("recent") if r["queue"] == row["queue"] and r["waiting"]]
    top = max(mine, key=lambda r: r["waiting"], default=None)
    if top is None or len(mine) < 2 or top["waiting"] < 0.8 * row["waiting"]:
        return ""
    return f" {number(top['waiting'])} of them are of {top['channel']}."


_HOURS = 6


def growing(figures: Figures) -> list[Problem]:
    """A backlog that has grown hour by hour, before it is old enough for ``behind``."""
    found = []
    goal = figures.objective.wait.total_seconds()
    for row in figures.rows("outlook"):
        if not goal < (row["oldest_s"] or 0) < OLD:
            continue
        points = [*_depths(figures, row["queue"]), row["waiting"]]
        rises = sum(b > a for a, b in pairwise(points))
        grown = points[-1] - points[0]
        if len(points) > _HOURS and rises >= _HOURS - 1 and grown >= max(20, points[0] / 2):
            says = (
                f"The backlog of queue {row['queue']} grows: {number(points[0])} were waiting "
                f"{_HOURS} hours ago, {number(points[-1])} now, the oldest for {length(row['oldest_s'])}."
            )
            do = f"Raise the concurrency of {row['queue']} before it is late (now {number(row['slots'])})."
            found.append(Problem(55, says, do, False, row["queue"]))
    return found


def _depths(figures: Figures, queue: str) -> list[int]:
    """How many waited at the end of each of the last whole hours."""
    hour = figures.now.replace(minute=0, second=0, microsecond=0)
    known = {r["hour"]: r["waiting_last"] for r in figures.rows("hours") if r["queue"] == queue}
    times = [hour - timedelta(hours=n) for n in range(_HOURS, 0, -1)]
    return [known.get(time, 0) for time in times]


def late(figures: Figures) -> list[Problem]:
    windows: dict[str, dict[int, Row]] = {}
    for row in figures.rows("slo"):
        windows.setdefault(row["queue"], {})[row["window_hours"]] = row
    found = []
    for queue, seen in windows.items():
        hour, six = seen.get(1), seen.get(6)
        if hour and six and hour["late"] >= 5 and min(hour["burn"], six["burn"]) > 1:
            says = (
                f"Queue {queue} misses its objective: {percent(hour['late_share'])} of the last hour's "
                f"starts were later than {length(figures.objective.wait.total_seconds())}, "
                f"{number(hour['burn'])} times as many as the budget allows."
            )
            do = f"See below since when {queue} waits, and which channels have the backlog."
            weight = 60 + min(hour["burn"], 39)
            found.append(Problem(weight, says, do, hour["burn"] > BURNING, queue))
    return found


# Workers, and what is unusual.


def lost_workers(figures: Figures) -> list[Problem]:
    """Leases of several messages expired: their workers were lost, or work outlasts its lease."""
    found = []
    recent = [r for r in figures.rows("crashes") if r["last_at"] >= figures.now - _DAY]
    for queue, rows in _by_queue(recent).items():
        messages = len({row["message_id"] for row in rows})
        if messages < 3:
            continue
        names = sorted({name for row in rows for name in row["worker_names"]})
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        says = (
            f"Queue {queue} lost workers: {number(sum(r['expired'] for r in rows))} leases of "
            f"{number(messages)} messages expired, on {shown}, the last at "
            f"{clock(max(r['last_at'] for r in rows))} UTC."
        )
        do = "Look whether these processes were killed (memory, a deploy); if they live, the work takes longer than its lease."
        found.append(Problem(50 + min(messages, 9), says, do, False, queue))
    return found


def poison(figures: Figures) -> list[Problem]:
    since = figures.now - _DAY
    rows = [r for r in figures.rows("crashes") if r["expired"] >= 2 and r["last_at"] >= since]
    if not rows:
        return []
    worst = max(rows, key=lambda row: (row["expired"], row["last_at"]))
    says = (
        f"Message {worst['message_id']} ({worst['queue']}/{worst['kind']}, {worst['channel']}) let "
        f"{worst['expired']} leases expire on {worst['workers']} workers: it probably crashes them."
    )
    do = "It becomes a dead letter by itself; look at its payload before you redrive it."
    return [Problem(30 + worst["expired"], says, do, False, worst["queue"])]


WORRYING = {
    ("came", "low"): "few messages arrive",
    ("came", "high"): "many messages arrive",
    ("completed", "low"): "few messages are completed",
    ("failing share", "high"): "many attempts fail",
    ("p95 wait", "high"): "messages wait too long",
}


def unusual(figures: Figures) -> list[Problem]:
    since = figures.now - timedelta(hours=3)
    rows = [r for r in figures.rows("normal") if r["hour"] >= since]
    rows = [r for r in rows if (r["metric"], r["verdict"]) in WORRYING]
    if not rows:
        return []
    row = max(
        rows,
        key=lambda r: abs(r["value"] - r["usual"]) / (r["deviation"] + 0.3 * r["usual"] + 1e-3),
    )
    what = WORRYING[row["metric"], row["verdict"]]
    shown = (
        length if row["metric"] == "p95 wait" else percent if "share" in row["metric"] else number
    )
    says = (
        f"Unusual for this hour: {what} in {row['queue']} at {clock(row['hour'])}, "
        f"{shown(row['value'])} instead of the usual {shown(row['usual'])}."
    )
    do = "Compare the hours below; a silent producer is as suspicious as a slow worker."
    return [Problem(20, says, do, False, row["queue"])]


def letters(figures: Figures) -> list[Problem]:
    ready = [r for r in figures.rows("redrive") if r["advice"] == "redrive" and r["letters"]]
    count = sum(row["letters"] for row in ready)
    if not count:
        return []
    queues = {row["queue"] for row in ready}
    says = f"{number(count)} dead letters can be redriven: their error has not occurred since."
    do = "See the advice below, then run laneway dead redrive."
    return [Problem(10, says, do, False, queues.pop() if len(queues) == 1 else None)]


def ended_twice(figures: Figures) -> list[Problem]:
    twice = sum(row["twice"] for row in figures.rows("repeats"))
    if not twice:
        return []
    says = f"{number(twice)} messages ended twice, which must not happen."
    do = "Keep this lake and report a bug: the queue broke a guarantee."
    return [Problem(2000, says, do, True)]


def _by_queue(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["queue"], []).append(row)
    return found


_RULES = (
    failing,
    new_failures,
    behind,
    growing,
    late,
    lost_workers,
    poison,
    unusual,
    letters,
    ended_twice,
)
