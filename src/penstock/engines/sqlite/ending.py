"""How leases and messages end: parts that several verbs share."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from penstock.plan import Plan

from .base import State, listed
from .moves import Moves, Moving


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


Released = Sequence[int]
"""A lease that was just ended, by its holder or by time: message id, fence, channel id."""


class Ending(Moving):
    def _release(self, leases: Iterable[Sequence[Any]]) -> Plan[list[Released]]:
        """Ends the leases that are held under these fences; the others are lost."""
        released: list[Released] = []
        for fence, ids in by_fence(leases).items():
            rows = yield self._say("leases_of", fence, listed(ids))
            if rows:
                yield self._say("release", fence, listed(ids))
                released += rows
        return released

    def _fates(self, released: Iterable[Released]) -> Plan[list[Fate]]:
        """What decides what becomes of their messages."""
        leases = {lease[0]: lease[:3] for lease in released}
        rows = yield self._say("held", listed(leases))
        return [Fate(*leases[row[0]], *row[1:]) for row in rows]

    def _end(self, ids: Sequence[int], now: int) -> Plan[None]:
        """Messages end for good, and their keys are free."""
        text = listed(ids)
        rows = yield self._say("held_keys", text)
        yield from self._free_keys([Key(*row) for row in rows], now)
        yield self._say("end_messages", text)

    def _end_waiting(self, ids: Sequence[int], outcome: str, state: State) -> Plan[list[int]]:
        """Those of the messages that no lease holds end without an attempt."""
        rows = yield self._say("waiting_of", listed(ids))
        if not rows:
            return []
        ended = [row[-1] for row in rows]
        yield self._each("stop_waiting", rows)
        notes = [(id, None, outcome, 1, 0, None, None, None) for id in ended]
        yield self._say("note", listed(notes), state.now)
        yield from self._tell(outcome, ended, state)
        yield from self._end(ended, state.now)
        moves = Moves()
        for channel_id, *_ in rows:
            moves.add(channel_id, more=-1)
        yield from self._move(moves, state)
        return ended

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

    def _bury(
        self, fates: dict[int, Fate], graves: Sequence[Grave], moves: Moves, now: int
    ) -> Plan[None]:
        """They become dead letters; the note of their last attempt was written before."""
        if not graves:
            return
        ids = listed(grave.id for grave in graves)
        yield self._say("bury", listed(graves), now)
        yield self._say("count_dead", ids)
        yield self._say("end_messages", ids)
        for grave in graves:
            moves.add(fates[grave.id].channel_id, leased=-1)

    def _settle(
        self,
        fates: Sequence[Fate],
        notes: Sequence[Sequence[Any]],
        backs: Sequence[Back],
        graves: Sequence[Grave],
        state: State,
    ) -> Plan[None]:
        """What becomes of messages whose leases were ended, if they did not end with them."""
        if not fates:
            return
        moves = Moves()
        by_id = {fate.id: fate for fate in fates}
        yield self._say("note", listed(notes), state.now)
        yield from self._tell_notes(notes, state)
        yield from self._put_back(by_id, backs, moves)
        yield from self._bury(by_id, graves, moves, state.now)
        yield from self._tell_dead("dead", [grave.id for grave in graves], state)
        yield from self._move(moves, state)
        yield self._say("claims_done", listed({fate.fence for fate in fates}))


def by_fence(leases: Iterable[Sequence[Any]]) -> dict[int, list[int]]:
    """Message ids by the fence under which they are said to be held."""
    groups: dict[int, list[int]] = {}
    for lease in leases:
        groups.setdefault(lease[1], []).append(lease[0])
    return groups
