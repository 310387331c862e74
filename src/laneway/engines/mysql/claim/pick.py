"""Which of a channel's messages start: by priority, due time and publish order, except that one
start in ten goes to the message that has waited longest, so that no priority starves.

Positions in a channel: for each priority that has known work, after which message it begins.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from laneway.engines.fairness import start_order
from laneway.engines.mysql.names import text
from laneway.plan import Row

Position = tuple[int, int]
"""Due time and message id: every message that has not started comes after it."""

Positions = dict[int, Position]


def read_positions(text: bytes | str) -> Positions:
    """From the channel's row: ``priority:due:id``, separated by commas."""
    plain = text.decode() if isinstance(text, bytes) else text
    positions: Positions = {}
    for part in filter(None, plain.split(",")):
        priority, due, id = map(int, part.split(":"))
        positions[priority] = due, id
    return positions


def positions_text(positions: Mapping[int, Position]) -> bytes:
    return ",".join(f"{p}:{due}:{id}" for p, (due, id) in sorted(positions.items())).encode()


def lowest_positions(positions: Positions, others: Iterable[tuple[int, Position]]) -> Positions:
    """The lower of the two positions in each priority."""
    merged = dict(positions)
    for priority, position in others:
        merged[priority] = min(position, merged.get(priority, position))
    return merged


class DueMessage(NamedTuple):
    """A row of due_messages: its numbers, and the other columns."""

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
    def position(self) -> Position:
        return self.due, self.id

    def claimed_row(self, fence: int, queue: str, channel: str) -> Row:
        """The row that the engine contract asks for."""
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


def due_message(row: Row) -> DueMessage:
    numbers = row[0].split(b"," if isinstance(row[0], bytes) else ",")
    # concat_ws leaves nulls out: a message that does not expire has no last number.
    expires_at = int(numbers.pop()) if len(numbers) == 10 else None
    return DueMessage._make((*map(int, numbers), expires_at, row[1:]))


class Picked(NamedTuple):
    rows: list[DueMessage]
    more: bool
    """Whether the channel may have more messages."""
    positions: Positions
    """Where those begin."""


def pick(found: Sequence[DueMessage], positions: Positions, wanted: int, skips: int) -> Picked:
    """``found`` holds up to ``wanted`` + 1 messages of each priority."""
    taken = list(found[:wanted])
    if len(positions) > 1:
        taken = start_order(found, wanted, skips, attrgetter("priority"), attrgetter("position"))
    counts = dict.fromkeys(positions, 0)
    for row in found:
        counts[row.priority] += 1
    left: Positions = {}
    for priority, position in positions.items():
        mine = [row.position for row in taken if row.priority == priority]
        if counts[priority] > len(mine):
            left[priority] = max(mine, default=position)
    return Picked(taken, bool(left), left)
