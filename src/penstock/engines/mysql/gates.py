"""Channels that refuse messages: full, or being removed."""

from collections.abc import Sequence

from penstock.plan import Plan

from .base import Base
from .posting import Post


class Gates(Base):
    def _refuse(self, batch: Sequence[Post]) -> Plan[None]:
        """Marks what its channel does not take.

        The backlog is what is committed and unfinished in the channel, as this publisher sees it,
        plus the batch itself. Publishers do not wait for each other, so transactions that are open
        at the same moment can pass the size by what they hold.
        """
        fresh = [post for post in batch if post.status is None]
        if not fresh:
            return
        rows = yield self._say("gates", sorted({post.channel_id for post in fresh}))
        closed = {bytes(row[0]) for row in rows if row[1]}
        limits = {bytes(row[0]): int(row[2]) for row in rows if row[2] is not None}
        room = (yield from self._room(limits)) if limits else {}
        for post in fresh:
            if post.channel_id in closed:
                post.status = "closed"
            elif post.channel_id in room:
                room[post.channel_id] -= 1
                if room[post.channel_id] < 0:
                    post.status = "full"

    def _room(self, limits: dict[bytes, int]) -> Plan[dict[bytes, int]]:
        rows = yield self._say_each("backlog", list(limits.items()))
        return {bytes(id): limits[bytes(id)] - int(count) for id, count in rows}
