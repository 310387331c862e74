"""once: record in the caller's transaction that something is done; true the first time.

Invariant: of all transactions that ask for the same key, only one that commits gets true. Another
one that asks meanwhile waits until the first has ended. Upkeep deletes expired keys.
"""

import secrets
from datetime import timedelta

from laneway.engines.mysql.base import MysqlBase, repeatable
from laneway.engines.mysql.names import pair_id
from laneway.engines.times import micros
from laneway.plan import Plan


class MysqlOnce(MysqlBase):
    @repeatable
    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        names = queue.encode(), key.encode()
        id, mark = pair_id(*names), secrets.randbits(62)
        rows = yield self._statement("clock", self._now())
        yield self._statement("once", [(id, *names, int(rows[0][0]) + micros(keep), mark)])
        ((found, keep_until, now),) = yield self._statement("read_once", id, self._now())
        if int(found) == mark:
            return True
        if int(keep_until) > int(now):
            return False
        yield self._statement("renew_once", int(now) + micros(keep), id)
        return True

    def _delete_expired_once(self, now: int, limit: int) -> Plan[int]:
        """For upkeep. Not done by once itself: in the caller's transaction it would hold locks."""
        rows = yield self._statement("expired_once", now, limit)
        if not rows:
            return 0
        ids = sorted(bytes(row[0]) for row in rows)
        rows = yield self._statement("lock_expired_once", ids, now)
        if rows:
            yield self._statement("delete_expired_once", [row[0] for row in rows])
        return len(rows)
