"""Which of a channel's messages start: by priority, due time and publish order, but one start in
ten goes to the longest waiting, so that no priority starves."""

from collections.abc import Sequence
from typing import NamedTuple

from penstock.plan import Row

from .names import text
from .places import Place, Places


class Found(NamedTuple):
    """A message as find.sql tells it: its numbers, and the rest of the row."""

    visit: int
    id: int
    due: int
    priority: int
    published_at: int
    first_published_at: int
    attempt: int
    max_attempts: int
    spent: int
    expires_at: int | None
    rest: Row

    @property
    def place(self) -> Place:
        return self.due, self.id

    def answer(self, fence: int, queue: str, channel: str) -> Row:
        """The row that the contract asks for."""
        kind, key, content_type, headers, state_type, state, payload = self.rest
        expires_at = self.expires_at
        return (
            self.id,
            fence,
            queue,
            channel,
            text(kind),
            self.priority,
            self.attempt + 1,
            self.max_attempts,
            self.due / 1e6,
            self.published_at / 1e6,
            self.first_published_at / 1e6,
            None if expires_at is None else expires_at / 1e6,
            text(key),
            text(content_type),
            text(headers),
            text(state_type),
            state,
            payload,
            self.spent,
        )


def found(row: Row) -> Found:
    numbers = row[0].split(b"," if isinstance(row[0], bytes) else ",")
    # One that does not expire has no last number.
    expires_at = int(numbers.pop()) if len(numbers) == 10 else None
    return Found._make((*map(int, numbers), expires_at, row[1:]))


class Picked(NamedTuple):
    rows: list[Found]
    more: bool
    """Whether there is anything left to look for."""
    places: Places
    """Where it lies."""


def pick(found: Sequence[Found], places: Places, wanted: int, skips: int) -> Picked:
    """``found`` are up to ``wanted`` + 1 rows of each priority."""
    rows = list(found)
    if len(places) > 1:
        rows = _in_order(rows, wanted, skips)
    taken = rows[:wanted]
    counts = dict.fromkeys(places, 0)
    for row in found:
        counts[row.priority] += 1
    left: Places = {}
    for priority, place in places.items():
        mine = [row.place for row in taken if row.priority == priority]
        if counts[priority] > len(mine):
            left[priority] = max(mine, default=place)
    return Picked(taken, bool(left), left)


def _in_order(rows: list[Found], wanted: int, skips: int) -> list[Found]:
    oldest = sorted(rows, key=lambda row: row.place)
    ahead = oldest[: (skips + wanted) // 10]
    rest = oldest[len(ahead) :]
    return ahead + sorted(rest, key=lambda row: (-row.priority, row.place))
