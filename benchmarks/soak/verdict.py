"""Are the lines flat? Those before the old snapshot are compared with those at the end."""

from statistics import median
from typing import NamedTuple

from .sampling import Account

MB = 1024 * 1024


class Line(NamedTuple):
    """One interval; bytes and seconds."""

    second: float
    snapshot: bool
    published: float
    done: float
    waiting: int
    late: float
    tables: int
    indexes: int
    history: int
    dead_rows: int
    memory: int


# What may be more at the end than before: a factor, and what is always allowed.
ALLOWED = {
    "late": (2.0, 0.25),
    "tables": (1.3, 8 * MB),
    "indexes": (1.3, 8 * MB),
    "dead_rows": (1.5, 50_000),
    "memory": (1.2, 10 * MB),
    "waiting": (2.0, 500),
}


def flat(lines: list[Line]) -> list[str]:
    """What is not flat. The first sixth is a warm-up: caches fill, statements are planned."""
    began = _held(lines)
    before = [line for line in lines if line.memory and line.second <= began and not line.snapshot]
    before = before[len(lines) // 6 :] or before or lines
    after = lines[-max(1, len(lines) // 6) :]
    found = []
    for name, (factor, slack) in ALLOWED.items():
        first = median(getattr(line, name) for line in before)
        last = median(getattr(line, name) for line in after)
        if last > first * factor + slack:
            found.append(f"{name} went from {first:,.2f} to {last:,.2f}")
    if (grown := _grown_after(lines)) > 0:
        found.append(f"tables and indexes went on growing after the snapshot: {grown / MB:.1f} MB")
    return found


def _held(lines: list[Line]) -> float:
    """When the snapshot began."""
    return next((line.second for line in lines if line.snapshot), lines[-1].second)


def _grown_after(lines: list[Line]) -> float:
    """Space that the snapshot cost stays, but is used again."""
    ended = max((n for n, line in enumerate(lines) if line.snapshot), default=None)
    if ended is None or ended + 2 >= len(lines):
        return 0
    sizes = [line.tables + line.indexes for line in lines]
    return sizes[-1] - 1.15 * max(sizes[: ended + 2]) - 4 * MB


def losses(account: Account, published: int, old_days: int) -> list[str]:
    found = []
    if (lost := published - account.different - account.waiting - account.dead) != 0:
        found.append(f"{lost} of {published} messages are lost")
    if twice := account.completed - account.different:
        found.append(f"{twice} messages were completed twice")
    if account.waiting:
        found.append(f"{account.waiting} messages still wait")
    if account.dead:
        found.append(f"{account.dead} messages were given up")
    if old_days:
        found.append(f"{old_days} days of history are older than the retention")
    return found
