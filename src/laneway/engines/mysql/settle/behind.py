"""Keys of messages that end, and messages that wait behind them until then.

Invariant: of the messages of a key at most one runs. Who parks a message behind another holds the
key's row, and so does whoever ends a message with a key: either the parked one is found here, or
the other finds that the message has ended. Locks keys in the order of their ids, then messages.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from laneway.engines.mysql.events import MysqlEventOutbox
from laneway.engines.mysql.names import pair_id
from laneway.engines.mysql.publish.rows import WakeRow
from laneway.plan import Plan


class EndedKey(NamedTuple):
    """The key of a message that ends; ``window`` is how long it lives on. ``owner``: the message
    that has the key, which may wait ``behind`` a running one, until ``behind_due``."""

    id: int
    queue: bytes
    key: bytes
    window: int | None
    owner: int | None = None
    behind: int | None = None
    behind_due: int | None = None

    @property
    def key_id(self) -> bytes:
        return pair_id(self.queue, self.key)


class ParkedMessage(NamedTuple):
    """A row of lock_parked."""

    id: int
    channel_id: bytes
    queue: bytes
    channel: bytes
    priority: int
    due: int
    wake_id: int | None


class MysqlBehind(MysqlEventOutbox):
    def _lock_keys(self, ended: Sequence[EndedKey]) -> Plan[list[EndedKey]]:
        """The same, with who has the keys now; nobody else can change that any more."""
        ids = sorted(key.key_id for key in ended)
        rows = yield self._statement("lock_keys", ids)
        found = {bytes(row[0]): row[1:4] for row in rows}
        nobody = (None, None, None)
        return [EndedKey(*key[:4], *found.get(key.key_id, nobody)) for key in ended]

    def _start_behind(self, ended: Iterable[EndedKey], now: int) -> Plan[list[int]]:
        """Messages that waited behind those that ended are due from now on. Returns those that
        ended. The keys are locked."""
        fronts = [key for key in ended if key.behind == key.id]
        if not fronts:
            return []
        dues = {key.owner: max(key.behind_due or now, now) for key in fronts}
        rows = yield self._statement("lock_parked", sorted(id for id in dues if id is not None))
        parked = [ParkedMessage(*row) for row in rows]
        wakes: list[WakeRow] = []
        for message in parked:
            due = dues[message.id]
            yield self._statement("move_due", message.id, due)
            wakes += _wakes(message, due)
        if own := sorted(message.wake_id for message in parked if message.wake_id is not None):
            yield self._statement("delete_own_wakes", own)
        yield from self._insert("add_wakes", wakes)
        yield self._statement("nothing_in_front", sorted(key.key_id for key in fronts))
        return [key.id for key in fronts]

    def _give_back_keys(self, ended: Iterable[EndedKey]) -> Plan[None]:
        """The key of a message that ended behind a running one belongs to that one again."""
        gone = {key.id for key in ended}
        ids = sorted(
            key.key_id
            for key in ended
            if key.owner == key.id and key.behind is not None and key.behind not in gone
        )
        for id in ids:
            yield self._statement("give_key_to_running", id)


def _wakes(m: ParkedMessage, due: int) -> list[WakeRow]:
    """One more where it is now. Its own wake, which counts it where it was, is deleted; if a
    snapshot hides that, one fewer just after its time."""
    names = m.queue, m.channel
    wakes: list[WakeRow] = [
        (due, m.channel_id, due, m.id, 1, 0, m.priority, m.priority > 0, *names)
    ]
    if m.wake_id is None:
        wakes.append((m.due + 1, m.channel_id, m.due, m.id, -1, 0, m.priority, False, *names))
    return wakes
