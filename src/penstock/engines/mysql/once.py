"""once: note in the caller's transaction that something is done; true the first time.

Keeps: of all transactions that ask for the same key, one that commits is told true. Another that
asks meanwhile waits until that one has ended. Upkeep forgets what is past its time.
"""

import secrets
from datetime import timedelta

from penstock.plan import Plan

from .base import Base
from .names import pair_id
from .repeating import repeatable
from .times import length


class Once(Base):
    @repeatable
    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        where = queue.encode(), key.encode()
        id, mark = pair_id(*where), secrets.randbits(62)
        rows = yield self._say("clock", self._now())
        yield self._say("once", [(id, *where, int(rows[0][0]) + length(keep), mark)])
        ((found, keep_until, now),) = yield self._say("once_read", id, self._now())
        if int(found) == mark:
            return True
        if int(keep_until) > int(now):
            return False
        yield self._say("once_renew", int(now) + length(keep), id)
        return True

    def _forget_done(self, now: int, limit: int) -> Plan[int]:
        """Part of upkeep. Not of once itself: in the caller's transaction it would hold locks."""
        rows = yield self._say("done_past", now, limit)
        if not rows:
            return 0
        rows = yield self._say("done_past_held", sorted(bytes(row[0]) for row in rows), now)
        if rows:
            yield self._say("done_drop", [row[0] for row in rows])
        return len(rows)
