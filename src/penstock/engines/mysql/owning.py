"""Own channels as a claim does, in a transaction of our own; those that have no row get one."""

from collections.abc import Iterable

from penstock.plan import Plan

from .base import Base
from .names import pair_id


class Owning(Base):
    def _own_channels(self, lanes: Iterable[tuple[bytes, bytes]]) -> Plan[list[bytes]]:
        """Locks the channels (queue, name) in the order of their ids, which it answers."""
        rows = sorted((pair_id(queue, name), queue, name) for queue, name in set(lanes))
        if rows:
            yield from self._say_rows("own", rows)
        return [row[0] for row in rows]
