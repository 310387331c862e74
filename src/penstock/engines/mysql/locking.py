"""Locking leases that may be gone, without holding up anybody else.

At REPEATABLE READ, which is MySQL's default and so what most callers have, a locking read of a row
that is not there locks the gap in which it would be. For the youngest messages that is everything
to the right, where all claims add their leases. Connections of our own lock no gaps.
"""

from collections.abc import Sequence

from penstock.plan import Plan, Row

from .base import Base
from .visits import PARKED


class Locking(Base):
    def _lock_leases(self, query: str, leases: Sequence[tuple[int, int]]) -> Plan[Sequence[Row]]:
        """The query's rows for those of the leases (message id, fence) that are held."""
        ids = sorted({id for id, _ in leases})
        yield self._say("leases_guard", ids, PARKED)._replace(guest=True)
        rows = yield self._say(query, list(leases), self._now())
        if len(rows) < len(leases):
            yield self._say("leases_unguard", ids)._replace(guest=True)
        return rows
