"""Keys: of two publishes with one live key, exactly one publishes; the other answers its id."""

import secrets
from collections.abc import Iterable, Sequence

from penstock.plan import Plan, Row

from .base import Base
from .names import text
from .posting import Post

# Where a plain read shows what is committed now: not an old snapshot, and nothing that may vanish.
_SHOWS_COMMITTED = ("READ-COMMITTED", "SERIALIZABLE")


class Keys(Base):
    def _reserve(self, keyed: Sequence[Post], now: int) -> Plan[None]:
        """Takes the batch's keys, or learns whose they are.

        A key that is taken is read, never locked. Only what seems free is asked for, in the order
        of the ids; from then on its row is locked by us and the answer is final. In a caller's
        transaction that reads an old snapshot, or what others have not committed, a key that seems
        taken may be free as well.
        """
        open_keys = _firsts(keyed)
        rows = yield self._say("keys", list(open_keys))
        _meet(open_keys, [row[:3] for row in rows if text(row[3]) in _SHOWS_COMMITTED], now)
        if not open_keys:
            return
        # Nobody else's number: what we read back tells whether the row is ours.
        mark = -1 - secrets.randbits(62)
        wanted = [(id, p.queue, p.key, mark) for id, p in sorted(open_keys.items())]
        yield from self._say_rows("keys_reserve", wanted)
        rows = yield self._say("keys_reserved", [row[0] for row in wanted])
        _meet(open_keys, [row for row in rows if int(row[1]) != mark], now)

    def _assign(self, keyed: Sequence[Post]) -> Plan[None]:
        """Published: the key is its message's. Refused: it is free again."""
        ours = sorted(
            ((p.key_id, p.queue, p.key, p.id) for p in keyed if p.status is None and not p.first),
        )
        yield from self._say_rows("keys_assign", ours)
        refused = sorted(p.key_id for p in keyed if p.status in ("full", "closed"))
        if refused:
            yield self._say("keys_drop", refused)


def _firsts(keyed: Iterable[Post]) -> dict[bytes, Post]:
    """The first of each key; the others of the batch follow it."""
    firsts: dict[bytes, Post] = {}
    for post in keyed:
        first = firsts.setdefault(post.key_id, post)
        if first is not post:
            post.first, post.status = first, "existing"
    return firsts


def _meet(open_keys: dict[bytes, Post], rows: Sequence[Row], now: int) -> None:
    """Those whose key lives are answered; a key whose time has passed can be taken."""
    for id, message_id, expires_at in rows:
        if expires_at is None or int(expires_at) > now:
            post = open_keys.pop(bytes(id))
            post.id, post.status = int(message_id), "existing"
