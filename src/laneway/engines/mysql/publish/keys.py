"""Keys: of two publishes with the same live key exactly one publishes; the other gets its id."""

import secrets
from collections.abc import Iterable, Sequence

from laneway.engines.mysql.base import MysqlBase
from laneway.engines.mysql.names import text
from laneway.plan import Plan, Row

from .rows import NewRow

# In these levels a plain read sees what is committed now: no old snapshot, nothing uncommitted.
_READS_COMMITTED = ("READ-COMMITTED", "SERIALIZABLE")


class MysqlKeys(MysqlBase):
    def _reserve_keys(self, keyed: Sequence[NewRow], now: int) -> Plan[None]:
        """Reserves the keys of the batch, or finds out which messages have them.

        A key that is taken is only read, never locked. Keys that seem free are inserted in the
        order of their ids; from then on we hold the lock on their rows and the result is final. In
        a caller's transaction that reads an old snapshot, or uncommitted changes, a key that seems
        taken may be free, so there the plain read does not count.
        """
        open_keys = _first_of_each_key(keyed)
        rows = yield self._statement("live_keys", list(open_keys))
        seen = [row[:3] for row in rows if text(row[3]) in _READS_COMMITTED]
        _remove_taken(open_keys, seen, now)
        if not open_keys:
            return
        # A number that nobody else uses: reading it back tells whether the row is ours.
        mark = -1 - secrets.randbits(62)
        wanted = [(id, row.queue, row.key, mark) for id, row in sorted(open_keys.items())]
        yield from self._insert("reserve_keys", wanted)
        rows = yield self._statement("reserved_keys", [row[0] for row in wanted])
        _remove_taken(open_keys, [row for row in rows if int(row[1]) != mark], now)

    def _assign_keys(self, keyed: Sequence[NewRow]) -> Plan[None]:
        """The key of a published message gets its id; that of a refused one is free again."""
        ours = sorted(
            (row.key_id, row.queue, row.key, row.id)
            for row in keyed
            if row.status is None and not row.first
        )
        yield from self._insert("assign_keys", ours)
        refused = sorted(row.key_id for row in keyed if row.status in ("full", "closed"))
        if refused:
            yield self._statement("delete_keys", refused)


def _first_of_each_key(keyed: Iterable[NewRow]) -> dict[bytes, NewRow]:
    """The others of the batch with the same key refer to the first."""
    firsts: dict[bytes, NewRow] = {}
    for row in keyed:
        first = firsts.setdefault(row.key_id, row)
        if first is not row:
            row.first, row.status = first, "existing"
    return firsts


def _remove_taken(open_keys: dict[bytes, NewRow], rows: Sequence[Row], now: int) -> None:
    """Rows whose key is live get the status "existing"; an expired key can be reserved."""
    for id, message_id, expires_at in rows:
        if expires_at is None or int(expires_at) > now:
            row = open_keys.pop(bytes(id))
            row.id, row.status = int(message_id), "existing"
