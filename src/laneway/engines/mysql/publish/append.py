"""Parts of publish: insert messages, and refuse what a channel does not take."""

from collections.abc import Sequence

from laneway.engines.mysql.base import MysqlBase
from laneway.engines.mysql.packets import chunks
from laneway.plan import Plan

from .rows import NewRow


class MysqlAppend(MysqlBase):
    def _add_messages(self, new: Sequence[NewRow], packet: int, step: int) -> Plan[None]:
        """Their ids follow each other by ``step``."""
        for chunk in chunks(new, packet):
            rows = yield self._statement("add_messages", [row.row for row in chunk])
            first = int(rows[0][0])
            for number, row in enumerate(chunk):
                row.id = first + number * step
        expiring = [(row.id, row.expires_at) for row in new if row.expires_at is not None]
        yield from self._insert("add_expiries", expiring)

    def _refuse(self, batch: Sequence[NewRow]) -> Plan[None]:
        """Marks messages whose channel is full or being removed.

        The backlog is what this publisher sees as committed and unfinished in the channel, plus the
        batch itself. Publishers do not wait for each other, so transactions that are open at the
        same time can exceed the limit by what they hold.
        """
        new = [row for row in batch if row.status is None]
        if not new:
            return
        rows = yield self._statement("refusing_channels", sorted({row.channel_id for row in new}))
        closed = {bytes(row[0]) for row in rows if row[1]}
        limits = {bytes(row[0]): int(row[2]) for row in rows if row[2] is not None}
        room = (yield from self._room(limits)) if limits else {}
        for row in new:
            if row.channel_id in closed:
                row.status = "closed"
            elif row.channel_id in room:
                room[row.channel_id] -= 1
                if room[row.channel_id] < 0:
                    row.status = "full"

    def _room(self, limits: dict[bytes, int]) -> Plan[dict[bytes, int]]:
        """How many more messages each channel takes."""
        rows = yield self._union("count_backlog", list(limits.items()))
        return {bytes(id): limits[bytes(id)] - int(count) for id, count in rows}
