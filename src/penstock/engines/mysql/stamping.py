"""The order in which the history is read: stamped after the commit, by one at a time.

Ids do not do: a transaction that commits late shows lower ones than a reader has passed. A stamp is
given to what is committed, under one row's lock, so that all of a stamp appears at once and later
stamps appear later. Readers go by (stamp, id).
"""

from penstock.plan import Plan

from .base import Base

_BATCH = 2_000
_MOST = 20_000


class Stamping(Base):
    def _stamp(self) -> Plan[int]:
        """Stamps what is new, if anything; answers the last stamp."""
        rows = yield self._say("turnstile_wait", b"settle")
        stamp, done = int(rows[0][0]), 0
        while done < _MOST:
            fresh = yield self._say("history_unsettled", _BATCH)
            if not fresh:
                break
            stamp += 1
            yield self._say("history_settle", [row[0] for row in fresh], stamp)
            done += len(fresh)
            if len(fresh) < _BATCH:
                break
        if done:
            yield self._say("turnstile_turn", stamp, b"settle")
        return stamp
