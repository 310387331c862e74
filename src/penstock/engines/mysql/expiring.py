"""Part of upkeep: leases that ran out, and messages whose own time has passed."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from penstock.plan import Plan, Row

from .cancelling import Cancelling
from .holding import FullyHeld
from .returning import Cause, Comeback, Returning

_EXPIRED = Cause(b"max_attempts", b"LeaseExpired", b"the lease ran out before the work was settled")
_MOST_DOUBLINGS = 40


class Backoff(Protocol):
    """What expiring needs to know."""

    @property
    def now(self) -> int: ...
    @property
    def history(self) -> bytes: ...
    @property
    def backoff_first(self) -> int: ...
    @property
    def backoff_most(self) -> int: ...


class Expired(NamedTuple):
    expired: int
    buried: int
    floor: int
    """Where the live part of the leases' index begins."""


class Expiring(Returning, Cancelling):
    def _expire(self, floor: int, limit: int, found: Backoff) -> Plan[Expired]:
        """The message returns to its own channel, later each time; the one that used up
        max_attempts becomes a dead letter here, before its payload can leave again."""
        rows = yield self._say("overdue", floor, found.now, limit)
        start = min((int(row[2]) for row in rows), default=found.now)
        if not rows:
            return Expired(0, 0, start)
        wanted = sorted((int(row[0]), int(row[1])) for row in rows)
        rows = yield self._say("overdue_held", wanted, found.now)
        held = [FullyHeld(*row) for row in rows]
        if not held:
            return Expired(0, 0, start)
        yield from self._tell("expired", [h.id for h in held])
        dying = [(h, _EXPIRED) for h in held if _spent(h)]
        if found.history != b"none":
            yield from self._say_rows("history_add", [_entry(h) for h in held])
        yield self._say("leases_drop", [h.id for h in held])
        yield from self._put_back([_comeback(h, found) for h in held if not _spent(h)])
        yield from self._free_slots((h.lane for h in held if h.counted), found.now)
        if dying:
            yield from self._bury(dying, found.now)
        return Expired(len(held), len(dying), start)

    def _lapse(self, now: int, limit: int) -> Plan[int]:
        """Claims step over messages whose time has passed; here they are taken away. Owns their
        channels, as a claim does."""
        rows = yield self._say("lapsing", now, limit)
        if not rows:
            return 0
        gone = [int(row[0]) for row in rows if row[1] is None]
        past = [row for row in rows if row[1] is not None]
        ended = (yield from self._end_past(past, now)) if past else []
        if gone or ended:
            yield self._say("expiries_drop", sorted([*gone, *ended]))
        return len(ended)

    def _end_past(self, past: Sequence[Row], now: int) -> Plan[list[int]]:
        lanes = sorted({(bytes(row[2]), row[3], row[4]) for row in past})
        yield from self._say_rows("channels_meet", lanes)
        owned = yield self._say("channels_own", [id for id, _, _ in lanes], now)
        ours = {bytes(row[0]) for row in owned}
        ids = sorted(int(row[1]) for row in past if bytes(row[2]) in ours)
        return (yield from self._end_waiting(ids, b"lapsed")) if ids else []


def _spent(held: FullyHeld) -> bool:
    return held.spent + 1 >= held.max_attempts


def _entry(held: FullyHeld) -> tuple[object, ...]:
    dead = _spent(held)
    return held.entry(b"expired", dead=dead, reason=b"max_attempts" if dead else None)


def _comeback(held: FullyHeld, found: Backoff) -> Comeback:
    doubled = found.backoff_first * 2 ** min(held.spent, _MOST_DOUBLINGS)
    return Comeback(held, found.now + min(found.backoff_most, doubled), True, True)
