"""The verdict: what is wrong, if anything, in three sentences for whoever is on call."""

from dataclasses import dataclass
from datetime import timedelta

from .html import clock, length, number
from .rules import OLD, Figures, Problem, problems


@dataclass(frozen=True, slots=True)
class Verdict:
    level: str
    sentences: tuple[str, str, str]
    problems: tuple[Problem, ...]

    def level_of(self, queue: str) -> str:
        """Of one queue: that of its worst problem."""
        mine = [problem for problem in self.problems if problem.queue == queue]
        return _level(mine)


def judge(figures: Figures) -> Verdict:
    found = problems(figures)
    return Verdict(_level(found), (_state(figures), *_worst(figures, found)), found)


def judge_empty(waiting: int, oldest_s: float) -> Verdict:
    """Of a lake without history: nothing has ended yet, but messages may be waiting."""
    if not waiting or oldest_s < OLD:
        return Verdict("quiet", _NOTHING, ())
    says = f"{number(waiting)} messages are waiting, the oldest for {length(oldest_s)}."
    do = "Start a worker, or check whether the queue is paused."
    problem = Problem(150, says, do, True)
    return Verdict("bad", ("Nothing has been processed yet.", says, do), (problem,))


def _level(found: "tuple[Problem, ...] | list[Problem]") -> str:
    return "bad" if any(p.urgent for p in found) else "warn" if found else "good"


_NOTHING = (
    "There is no history in this lake yet.",
    "So there is nothing to report.",
    "Run laneway lake sync once messages have been processed.",
)


def _state(figures: Figures) -> str:
    rows = figures.rows("outlook")
    waiting = sum(row["waiting"] for row in rows)
    oldest = max((row["oldest_s"] or 0 for row in rows), default=0)
    day = [r for r in figures.rows("hours") if r["hour"] >= figures.now - timedelta(hours=24)]
    done, died = (sum(row[name] for row in day) for name in ("completed", "dead"))
    begin = (
        f"{number(done)} messages were completed in the 24 hours before {clock(figures.now)} UTC"
    )
    if died:
        begin += f", {number(died)} died"
    if not waiting:
        return f"{begin}, and nothing is waiting."
    return f"{begin}; {number(waiting)} are waiting, the oldest for {length(oldest)}."


def _worst(figures: Figures, found: tuple[Problem, ...]) -> tuple[str, str]:
    if found:
        more = len(found) - 1
        also = f" ({more} more below.)" if more else ""
        return found[0].says, found[0].do + also
    left = sum(row["letters"] for row in figures.rows("redrive"))
    if left:
        return (
            "This report has found no problems.",
            f"Dead letters to decide on when there is time: {number(left)}.",
        )
    return "This report has found no problems.", "Nobody needs to do anything."
