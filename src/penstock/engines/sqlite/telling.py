"""Part of every verb that moves messages: what happened goes into the mailboxes of those who
listen. Whether anybody does, the verb's first statement has said already."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from penstock.plan import Plan

from .base import Base, State, listed


class Telling(Base):
    def _tell(self, what: str, ids: Sequence[int | None], state: State) -> Plan[None]:
        """Of messages that wait or are leased."""
        if state.heard and ids:
            yield self._say("tell", what, listed(ids), state.now)

    def _tell_dead(self, what: str, ids: Sequence[int], state: State) -> Plan[None]:
        """Of dead letters."""
        if state.heard and ids:
            yield self._say("tell_dead", what, listed(ids), state.now)

    def _tell_notes(self, notes: Sequence[Sequence[Any]], state: State) -> Plan[None]:
        """What the history is told, in its words."""
        if state.heard:
            for what, some in groupby(notes, lambda note: note[2]):
                yield from self._tell(what, [note[0] for note in some], state)
