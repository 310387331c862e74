"""Messages of a paused kind: a claim puts them back, uncounted, and answers the others.

Inside a channel a claim takes messages from a position on, so it cannot leave some out; see
docs/decisions/0015-pauses.md.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

from laneway.model import ClaimStatus, Return, Settled
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Taken

SHORTEST, LONGEST = timedelta(seconds=10), timedelta(minutes=5)
_ZERO = timedelta(0)


def put_back_for(paused: timedelta, left: timedelta | None) -> timedelta:
    """For how long, if the pause began ``paused`` ago: about as long again, so that a long pause
    costs little and a resumed kind soon starts."""
    length = min(max(paused, SHORTEST), LONGEST)
    return length if left is None else min(length, left)


def without_paused(
    taken: Taken, give_back: Callable[[Sequence[Return]], Plan[list[Settled]]]
) -> Plan[Taken]:
    """What a claim answers: nothing of a paused kind."""
    if not taken.paused:
        return taken
    kept, returns = [], []
    for row in taken.rows:
        delay = taken.paused.get((row[Column.QUEUE], row[Column.KIND]))
        if delay is None:
            kept.append(row)
        else:
            returns.append(Return(row[Column.ID], row[Column.FENCE], max(delay, _ZERO)))
    if not returns:
        return taken
    yield from give_back(returns)
    if kept:
        return taken._replace(rows=kept)
    # Behind these there may be others.
    return Taken([], ClaimStatus.BUSY, _ZERO, None, None)
