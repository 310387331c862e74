"""What a verb does to the counts of its channels, added up by channel."""

from penstock.plan import Plan

from .base import State
from .telling import Telling


class Moves:
    """By channel id: messages more, leases more, bands, earliest due."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, int, int, int | None]] = {}

    def add(
        self,
        channel_id: int,
        *,
        more: int = 0,
        leased: int = 0,
        priority: int = 0,
        due: int | None = None,
    ) -> None:
        old_more, old_leased, bands, first = self._rows.get(channel_id, (0, 0, 0, None))
        if due is not None:
            bands |= 1 << priority
            first = due if first is None else min(first, due)
        self._rows[channel_id] = (old_more + more, old_leased + leased, bands, first)

    def rows(self, first_turn: int, now: int) -> list[tuple[int | None, ...]]:
        """Of move.sql; whoever joins the ring does so in the order in which it was added."""
        return [
            (channel_id, *move, first_turn + place, now)
            for place, (channel_id, move) in enumerate(self._rows.items())
        ]


class Moving(Telling):
    def _move(self, moves: Moves, state: State) -> Plan[None]:
        yield self._each("move", moves.rows(state.turn, state.now))
