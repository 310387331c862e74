"""Which of a channel's messages start: by priority, due time and publish order, but one start in
ten goes to the longest waiting, so that no priority starves."""

from collections.abc import Sequence
from typing import NamedTuple

from penstock.plan import Row

from .places import Place, Places

ID, DUE, PRIORITY = 1, 2, 3  # columns of find.sql


class Picked(NamedTuple):
    rows: list[Row]
    more: bool
    """Whether there is anything left to look for."""
    places: Places
    """Where it lies."""


def pick(found: Sequence[Row], places: Places, wanted: int, skips: int) -> Picked:
    """``found`` are up to ``wanted`` + 1 rows of each priority."""
    rows = list(found)
    if len(places) > 1:
        rows = _in_order(rows, wanted, skips)
    taken = rows[:wanted]
    counts = dict.fromkeys(places, 0)
    for row in found:
        counts[int(row[PRIORITY])] += 1
    left: Places = {}
    for priority, place in places.items():
        mine = [_place(row) for row in taken if int(row[PRIORITY]) == priority]
        if counts[priority] > len(mine):
            left[priority] = max(mine, default=place)
    return Picked(taken, bool(left), left)


def _in_order(rows: list[Row], wanted: int, skips: int) -> list[Row]:
    oldest = sorted(rows, key=_place)
    ahead = oldest[: (skips + wanted) // 10]
    rest = oldest[len(ahead) :]
    return ahead + sorted(rest, key=lambda row: (-int(row[PRIORITY]), _place(row)))


def _place(row: Row) -> Place:
    return int(row[DUE]), int(row[ID])
