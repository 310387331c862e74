"""publish: append messages, and one wake per channel, priority and time touched.

Keeps: it takes no lock that another publisher or a claim waits for, but for a publish of the same
key that has not ended yet.
"""

from collections.abc import Sequence

from penstock.contract import BATCH
from penstock.model import Draft, Published
from penstock.plan import Plan

from .gates import Gates
from .keys import Keys
from .packets import chunks
from .posting import Post, posts, wakes
from .repeating import repeatable
from .telling import Telling


class Publishing(Keys, Gates, Telling):
    @repeatable
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        answers: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            answers += yield from self._publish(drafts[start : start + BATCH])
        return answers

    def _publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        ((now, packet, step, gated, heard),) = yield self._say("publish_begin", self._now())
        batch = posts(drafts, int(now))
        keyed = [post for post in batch if post.key is not None]
        if keyed:
            yield from self._reserve(keyed, int(now))
        if gated:
            yield from self._refuse(batch)
        fresh = [post for post in batch if post.status is None]
        yield from self._append(fresh, int(now), int(packet), int(step))
        if heard:
            yield from self._tell("published", [post.id for post in fresh if post.id is not None])
        if keyed:
            yield from self._assign(keyed)
        return [post.answer() for post in batch]

    def _append(self, fresh: Sequence[Post], now: int, packet: int, step: int) -> Plan[None]:
        for chunk in chunks(fresh, packet):
            rows = yield self._say("publish_messages", [post.row for post in chunk])
            first = int(rows[0][0])
            for number, post in enumerate(chunk):
                post.id = first + number * step
        yield from self._say_rows("wakes", wakes(fresh, now))
        limited = [(post.id, post.expires_at) for post in fresh if post.expires_at is not None]
        yield from self._say_rows("expiries", limited)
