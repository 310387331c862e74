"""Locking channels. A session that has locked a channel's row may change its schedule, and no
claim can start its messages meanwhile. Channels that have no row yet get one."""

from collections.abc import Iterable, Sequence

from laneway.engines.mysql.base import MysqlBase
from laneway.engines.mysql.names import pair_id
from laneway.engines.mysql.packets import small_chunks
from laneway.plan import Plan, Row

ChannelRef = tuple[bytes, bytes, bytes]
"""Id, queue and name of a channel."""


class MysqlChannelLocks(MysqlBase):
    def _lock_channels(self, channels: Iterable[tuple[bytes, bytes]]) -> Plan[list[bytes]]:
        """Locks the channels (queue, name) in the order of their ids, and returns the ids. Waits
        for channels that others hold."""
        rows = sorted((pair_id(queue, name), queue, name) for queue, name in set(channels))
        if rows:
            yield from self._insert("lock_channels", rows)
        return [row[0] for row in rows]

    def _add_channels(self, channels: Iterable[ChannelRef]) -> Plan[None]:
        """Adds channel rows that are missing, in the order of their ids. It may wait for another
        session that is adding the same ones: call it only while nothing else is locked. If that
        one's transaction stays open, its channels are left out."""
        for chunk in small_chunks(sorted(channels)):
            done = yield self._statement("add_channels", chunk)._replace(if_free=True)
            for row in () if done else chunk:
                yield self._statement("add_free_channel", [row])._replace(if_free=True)

    def _lock_free_channels(self, ids: Sequence[bytes], now: int | None) -> Plan[Sequence[Row]]:
        """Locks those that nobody else holds; returns the columns of ``LockedChannel``."""
        return (yield self._statement("lock_free_channels", ids, now))

    def _wait_for_channel(self, id: bytes) -> Plan[bool]:
        """Whether it is ours now."""
        return bool((yield self._statement("wait_for_channel", id)._replace(if_free=True)))
