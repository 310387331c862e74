"""Made-up histories for the rules, and their figures, computed in plain Python.

The figures are the columns of the report's tables that the rules read; the tables themselves are
compared with plain SQL in ``tests/lake``.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from laneway.lake.report.tables import Objective

Row = dict[str, Any]
NOW = datetime(2026, 11, 10, 13, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
FAILED = ("retried", "failed", "expired")


@dataclass(frozen=True, slots=True)
class Attempt:
    message: int
    queue: str
    channel: str
    ready: datetime
    claimed: datetime
    ended: datetime
    outcome: str
    dead: bool
    error: str
    worker: str


@dataclass(slots=True)
class History:
    """Attempts, and messages that wait: (queue, channel, due)."""

    attempts: list[Attempt] = field(default_factory=list)
    waiting: list[tuple[str, str, datetime]] = field(default_factory=list)

    def add(
        self,
        ended: datetime,
        outcome: str = "completed",
        *,
        queue: str = "mail",
        channel: str | None = None,
        wait: float = 0.2,
        dead: bool | None = None,
        error: str = "ValueError",
        worker: str = "w1",
        message: int | None = None,
    ) -> None:
        count = len(self.attempts)
        claimed = ended - timedelta(seconds=1)
        self.attempts.append(
            Attempt(
                count if message is None else message,
                queue,
                channel or f"tenant-{count % 9}",
                claimed - timedelta(seconds=wait),
                claimed,
                ended,
                outcome,
                outcome == "failed" if dead is None else dead,
                error,
                worker,
            )
        )

    def add_steady(
        self, hours: float, per_hour: float, until: datetime = NOW, **options: Any
    ) -> None:
        for n in range(int(hours * per_hour)):
            self.add(until - timedelta(seconds=3600 / per_hour * (n + 0.5)), **options)

    def add_waiting(self, count: int, oldest: timedelta, channel: str = "tenant-1") -> None:
        for n in range(count):
            self.waiting.append(("mail", channel, NOW - oldest * (1 - n / count)))


class MadeUpFigures:
    """The figures of a history as of ``NOW``."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.now = NOW
        self.objective = Objective()
        self._tables = {
            "recent": list(self._recent()),
            "hours": list(self._hours()),
            "outlook": list(self._outlook()),
            "slo": list(self._slo()),
            "signatures": list(self._signatures()),
            "crashes": list(self._crashes()),
            "redrive": list(self._redrive()),
            "repeats": [],
        }
        self._tables["normal"] = list(self._normal())

    def rows(self, table: str) -> list[Row]:
        return self._tables[table]

    @property
    def _queues(self) -> list[str]:
        queues = {a.queue for a in self._history.attempts}
        return sorted(queues | {queue for queue, _, _ in self._history.waiting})

    def _since(self, hours: float, queue: str) -> list[Attempt]:
        begin = NOW - timedelta(hours=hours)
        return [a for a in self._history.attempts if a.queue == queue and a.ended >= begin]

    def _oldest(self, queue: str, channel: str | None = None) -> list[float]:
        return [
            (NOW - due).total_seconds()
            for q, c, due in self._history.waiting
            if q == queue and channel in (None, c)
        ]

    def _recent(self) -> Iterator[Row]:
        for queue in self._queues:
            day = self._since(24, queue)
            waiting = {c for q, c, _ in self._history.waiting if q == queue}
            for channel in sorted({a.channel for a in day} | waiting):
                mine = [a for a in day if a.channel == channel]
                last = [a for a in mine if a.ended >= NOW - HOUR]
                ages = self._oldest(queue, channel)
                yield {
                    "queue": queue, "channel": channel,
                    "completed": _count(mine, "completed"), "failing": _count(mine, *FAILED),
                    "died": sum(a.dead for a in mine),
                    "last_completed": _count(last, "completed"),
                    "last_failing": _count(last, *FAILED),
                    "waiting": len(ages), "oldest_s": max(ages, default=None),
                }  # fmt: skip

    def _hours(self) -> Iterator[Row]:
        for queue in self._queues:
            ended: dict[datetime, list[Attempt]] = defaultdict(list)
            came: dict[datetime, int] = defaultdict(int)
            for a in self._history.attempts:
                if a.queue == queue:
                    ended[_hour(a.ended)].append(a)
                    came[_hour(a.ready)] += 1
            dues = [due for q, _, due in self._history.waiting if q == queue]
            for due in dues:
                came[_hour(due)] += 1
            first = min([*ended, *came])
            for n in range(int((NOW - first) / HOUR) + 1):
                hour = first + n * HOUR
                mine = ended[hour]
                yield {
                    "queue": queue, "hour": hour, "came": came[hour],
                    "completed": _count(mine, "completed"), "failing": _count(mine, *FAILED),
                    "dead": sum(a.dead for a in mine),
                    "waiting_last": sum(due < hour + HOUR for due in dues) + sum(
                        a.queue == queue and a.ready < hour + HOUR <= a.claimed
                        for n in (0, 1) for a in ended.get(hour + n * HOUR, ())),
                }  # fmt: skip

    def _outlook(self) -> Iterator[Row]:
        for queue in self._queues:
            ages = self._oldest(queue)
            mine = self._since(1, queue)
            started = len(mine)
            came = sum(a.ready >= NOW - HOUR for a in mine) + sum(age < 3600 for age in ages)
            drains = len(ages) * 3600 / (started - came) if started > came else None
            yield {
                "queue": queue, "waiting": len(ages), "oldest_s": max(ages, default=None),
                "came_per_hour": came, "started_per_hour": started,
                "drains_in_s": drains if ages else 0.0, "slots": 4, "slots_needed": 4, "dead": 0,
            }  # fmt: skip

    def _slo(self) -> Iterator[Row]:
        for queue in self._queues:
            for hours in (1, 6, 24, 72):
                mine = self._since(hours, queue)
                late = sum((a.claimed - a.ready).total_seconds() > 60 for a in mine)
                if mine:
                    share = late / len(mine)
                    yield {
                        "queue": queue, "window_hours": hours, "starts": len(mine), "late": late,
                        "late_share": share, "burn": share / 0.01,
                    }  # fmt: skip

    def _signatures(self) -> Iterator[Row]:
        seen: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
        for a in self._history.attempts:
            if a.outcome in FAILED:
                seen[a.queue, "LeaseExpired" if a.outcome == "expired" else a.error].append(a)
        begins = min(a.ended for a in self._history.attempts)
        for (queue, error), mine in seen.items():
            first = min(a.ended for a in mine)
            yield {
                "queue": queue, "kind": "send", "type": error, "n": len(mine),
                "dead": sum(a.dead for a in mine), "first_at": first,
                "last_at": max(a.ended for a in mine),
                "today": sum(a.ended.date() == NOW.date() for a in mine),
                "yesterday": sum(a.ended.date() == NOW.date() - timedelta(days=1) for a in mine),
                "is_new": first >= NOW - 24 * HOUR > begins,
            }  # fmt: skip

    def _crashes(self) -> Iterator[Row]:
        seen: dict[tuple[str, int], list[Attempt]] = defaultdict(list)
        for a in self._history.attempts:
            if a.outcome == "expired":
                seen[a.queue, a.message].append(a)
        for (queue, message), mine in seen.items():
            names = sorted({a.worker for a in mine})
            yield {
                "queue": queue, "kind": "send", "channel": mine[0].channel, "message_id": message,
                "expired": len(mine), "workers": len(names), "worker_names": names,
                "last_at": max(a.ended for a in mine),
            }  # fmt: skip

    def _redrive(self) -> Iterator[Row]:
        for queue in self._queues:
            dead = sum(a.dead for a in self._history.attempts if a.queue == queue)
            if dead:
                yield {"queue": queue, "letters": dead, "advice": "fix first"}

    def _normal(self) -> Iterator[Row]:
        """Arrivals and completions against the same hours of the days before."""
        known = {(r["queue"], r["hour"]): r for r in self._tables["hours"]}
        for (queue, hour), row in known.items():
            if not NOW - 25 * HOUR <= hour < _hour(NOW):
                continue
            for metric in ("came", "completed"):
                days = [known.get((queue, hour - n * 24 * HOUR)) for n in range(1, 14)]
                before = [float(r[metric]) for r in days if r]
                if len(before) < 3:
                    continue
                usual = median(before)
                deviation = 1.4826 * median(abs(v - usual) for v in before)
                off = row[metric] - usual
                odd = abs(off) > 4 * deviation + 0.3 * usual + 10
                yield {
                    "queue": queue, "hour": hour, "metric": metric, "value": row[metric],
                    "usual": usual, "deviation": deviation,
                    "verdict": ("high" if off > 0 else "low") if odd else "usual",
                }  # fmt: skip


def _count(attempts: list[Attempt], *outcomes: str) -> int:
    return sum(a.outcome in outcomes for a in attempts)


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
