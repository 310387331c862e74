"""Messages whose leases were just ended: back to their channel, or to the dead letters."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from penstock.plan import Plan

from .ending import Ending
from .holding import FullyHeld
from .posting import WakeRow


class Comeback(NamedTuple):
    """A message that waits again from ``due`` on. ``counts``: the attempt is counted; ``fails``: it
    also uses up one of max_attempts, else the budget starts anew."""

    held: FullyHeld
    due: int
    counts: bool
    fails: bool


class Cause(NamedTuple):
    """Why a message died."""

    reason: bytes
    error_type: bytes | None
    error: bytes | None


class Returning(Ending):
    def _put_back(self, comebacks: Sequence[Comeback]) -> Plan[None]:
        """A wake for each tells its channel; a row is rewritten only if it changes."""
        groups: dict[tuple[int, bool, bool], list[int]] = defaultdict(list)
        for back in comebacks:
            if back.counts or back.due != back.held.due:
                groups[back.due, back.counts, back.fails].append(back.held.id)
        for (due, counts, fails), ids in groups.items():
            yield self._say("put_back", ids, due, int(counts), int(fails))
        yield from self._say_rows("wakes", [_wake(back) for back in comebacks])

    def _bury(self, dying: Sequence[tuple[FullyHeld, Cause]], now: int) -> Plan[None]:
        yield from self._tell("dead", [held.id for held, _ in dying])
        groups: dict[Cause, list[int]] = defaultdict(list)
        for held, cause in dying:
            groups[cause].append(held.id)
        for cause, ids in groups.items():
            yield self._say("bury", ids, now, *cause)
            yield self._say("messages_drop", ids)
        yield from self._count_dead(((held.queue, held.channel) for held, _ in dying), 1)


def _wake(back: Comeback) -> WakeRow:
    held, due = back.held, back.due
    at = max(due, held.now)
    ahead = held.priority > 0 or due < at
    return (
        at,
        held.channel_id,
        due,
        held.id,
        1,
        0,
        held.priority,
        ahead,
        held.queue,
        held.channel,
    )
