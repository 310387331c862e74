"""How leases and messages end: parts that several verbs share."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from penstock.plan import Plan

from .base import Base, State, listed
from .moves import Moves


class Back(NamedTuple):
    """A message that waits again. ``counts``: the attempt is counted."""

    id: int
    due: int
    counts: bool
    spent: int
    keep: bool = True
    state: bytes | None = None
    state_type: str | None = None


class Fate(NamedTuple):
    """A message whose lease was ended, and what decides what becomes of it."""

    id: int
    fence: int
    channel_id: int
    priority: int
    due: int
    spent: int
    max_attempts: int


class Grave(NamedTuple):
    """A message that becomes a dead letter."""

    id: int
    reason: str
    error_type: str | None
    error: str | None


class Key(NamedTuple):
    """A publish key whose message ended; ``window`` is how long it lives on."""

    queue: str
    key: str
    message_id: int
    window: int | None


class Ending(Base):
    def _fates(self, released: Iterable[Sequence[Any]]) -> Plan[list[Fate]]:
        """Of leases that were just ended: rows of message id, fence and channel id."""
        leases = {row[0]: row for row in released}
        rows = yield self._say("held", listed(leases))
        return [Fate(*leases[row[0]], *row[1:]) for row in rows]

    def _end(self, ids: Sequence[int], moves: Moves, now: int, *, leased: bool) -> Plan[None]:
        """Messages end for good."""
        rows = yield self._say("end_messages", listed(ids))
        for row in rows:
            moves.add(row[1], more=0 if leased else -1, leased=-1 if leased else 0)
        keys = [Key(row[4], row[2], row[0], row[3]) for row in rows if row[2] is not None]
        yield from self._free_keys(keys, now)

    def _end_waiting(self, ids: Sequence[int], outcome: str, state: State) -> Plan[None]:
        """Messages that were just taken out of the waiting ones end without an attempt."""
        if not ids:
            return
        moves = Moves()
        notes = [(id, None, outcome, 1, 0, None, None, None) for id in ids]
        yield self._say("note", listed(notes), state.now)
        yield from self._end(ids, moves, state.now, leased=False)
        yield self._say("move", moves.listed(), state.turn, state.now)

    def _free_keys(self, keys: Sequence[Key], now: int) -> Plan[None]:
        """Of messages that ended: their keys are free, or live on for their window."""
        if free := [key[:3] for key in keys if key.window is None]:
            yield self._each("free_key", free)
        if kept := [(*key[:3], now + key.window) for key in keys if key.window is not None]:
            yield self._each("keep_key", kept)

    def _put_back(self, fates: dict[int, Fate], backs: Sequence[Back], moves: Moves) -> Plan[None]:
        """They wait again in their own channels."""
        if not backs:
            return
        yield self._each("put_back", backs)
        yield self._say("wait_again", listed(back.id for back in backs))
        for back in backs:
            fate = fates[back.id]
            moves.add(fate.channel_id, more=1, leased=-1, priority=fate.priority, due=back.due)

    def _bury(self, graves: Sequence[Grave], moves: Moves, now: int) -> Plan[None]:
        """They become dead letters; the note of their last attempt was written before."""
        if not graves:
            return
        ids = listed(grave.id for grave in graves)
        yield self._say("bury", listed(graves), now)
        yield self._say("count_dead", ids)
        rows = yield self._say("end_messages", ids)
        for row in rows:
            moves.add(row[1], leased=-1)
