"""Part of publish: messages whose keys are in use, and that replace what has them.

Invariant: a leased message is never touched. The new one waits behind it, scheduled for a time that
never comes, until that one has ended (``_start_behind``). Locks channels, as a claim does, then
keys, both in the order of their ids.
"""

from collections.abc import Sequence
from typing import NamedTuple

from laneway.engines.key_modes import PARKED_FROM, next_due, parked_due
from laneway.engines.mysql.claim.lock import MysqlChannelLocks
from laneway.engines.mysql.events import MysqlEventOutbox
from laneway.engines.mysql.names import pair_id, text
from laneway.engines.times import micros
from laneway.errors import DatabaseFailed
from laneway.model import Draft, Published
from laneway.plan import Plan

from .append import MysqlAppend
from .keys import MysqlKeys
from .rows import NewRow, WakeRow

_DUE = 1  # in the row of a message


class KeyOwner(NamedTuple):
    """A row of key_owners: the message or the dead letter that has a key."""

    id: int
    behind: int | None
    behind_due: int | None
    channel_id: bytes
    kind: bytes
    priority: int
    due: int
    published_at: int
    leased: int


class MysqlReplace(MysqlKeys, MysqlAppend, MysqlEventOutbox, MysqlChannelLocks):
    def _replace(self, drafts: Sequence[Draft]) -> Plan[list[Published | None]]:
        channels = {(draft.queue.encode(), draft.channel.encode()) for draft in drafts}
        yield from self._lock_channels(channels)
        # The time is read once the channels are ours: later than that of every claim that had them.
        rows = yield self._statement("publish_state", self._now())
        now, packet, step = (int(value) for value in rows[0][:3])
        batch = {row.key_id: row for row in (NewRow(draft, now) for draft in drafts)}
        taken, owners = yield from self._key_owners(batch, now)
        leased, waiting = [], []
        for id, row in batch.items():
            owner = owners.get(id)
            row.id, row.status = taken.get(id), "existing"
            if owner is None or (owner.channel_id, owner.kind) != (row.channel_id, row.row[10]):
                continue
            if owner.leased:
                row.id, row.status = None, None
                leased.append(row)
            else:
                waiting.append((row, owner))
        closed = yield from self._closed([row for row, _ in waiting])
        modes = {id: draft.mode for id, draft in zip(batch, drafts, strict=True)}
        for row, owner in waiting:
            if row.channel_id in closed:
                row.id, row.status = None, "closed"
            else:
                bound = modes[row.key_id]
                length = bound.debounce_for if bound else None
                yield from self._change(row, owner, now, None if length is None else micros(length))
                row.status = "replaced"
        yield from self._park(leased, now, packet, step)
        return [row.published() if id in taken else None for id, row in batch.items()]

    def _key_owners(
        self, batch: dict[bytes, NewRow], now: int
    ) -> Plan[tuple[dict[bytes, int], dict[bytes, KeyOwner]]]:
        """Which keys are still in use, by which messages, and those of them that exist."""
        rows = yield self._statement("lock_taken_keys", sorted(batch))
        if rows and text(rows[0][5]) != "READ-COMMITTED":
            raise DatabaseFailed(
                f"to replace a message needs READ COMMITTED, the transaction is {text(rows[0][5])}:"
                " use a connection of its own, or set the transaction's isolation level",
                "25000",
            )
        taken = {bytes(row[0]): int(row[1]) for row in rows if row[2] is None or int(row[2]) > now}
        held = {int(row[1]): row for row in rows if row[2] is None}
        if not held:
            return taken, {}
        rows = yield self._statement("key_messages", sorted(held))
        owners = {
            bytes(held[int(row[0])][0]): KeyOwner(int(row[0]), *held[int(row[0])][3:5], *row[1:])
            for row in rows
        }
        keys = {int(row[1]): bytes(row[0]) for row in held.values() if bytes(row[0]) not in owners}
        if keys:
            rows = yield self._statement("lock_dead_owners", sorted(keys))
            for id, queue, channel, kind in rows:
                row = batch[keys[int(id)]]
                if (row.channel_id, row.row[10]) == (pair_id(queue, channel), kind):
                    # A dead letter gives its key up.
                    yield self._statement("free_dead_keys", [row.key_id], [int(id)])
                    yield self._statement("forget_dead_keys", [int(id)])
                    del taken[row.key_id]
        return taken, owners

    def _closed(self, rows: Sequence[NewRow]) -> Plan[set[bytes]]:
        if not rows:
            return set()
        found = yield self._statement("refusing_channels", sorted({row.channel_id for row in rows}))
        return {bytes(row[0]) for row in found if row[1]}

    def _change(self, row: NewRow, owner: KeyOwner, now: int, bound: int | None) -> Plan[None]:
        """A message that waits gets the new content, and perhaps another place."""
        row.id = owner.id
        old = owner.due if owner.behind_due is None else owner.behind_due
        due = next_due(now, row.due, old, owner.published_at, bound)
        if owner.behind is not None:
            yield self._statement("set_behind_due", row.key_id, due)
            due = owner.due
        yield from self._check_fits([row.row[-1]])
        expires_at, window, attempts, priority = row.row[4:8]
        content = (expires_at, window, attempts, priority, *row.row[12:15])
        yield self._statement("replace_message", owner.id, due, *content)
        yield self._statement("delete_expiries", [owner.id])
        if expires_at is not None:
            yield from self._insert("add_expiries", [(owner.id, expires_at)])
        if (due, priority) != (owner.due, owner.priority):
            yield from self._insert("add_wakes", _moved(row, owner, due, now))

    def _park(self, leased: Sequence[NewRow], now: int, packet: int, step: int) -> Plan[None]:
        """New messages, behind the running ones that have their keys."""
        if not leased:
            return
        yield from self._refuse(leased)
        new = [row for row in leased if row.status is None]
        for row in new:
            row.row = (*row.row[:_DUE], PARKED_FROM, *row.row[_DUE + 1 :])
        yield from self._add_messages(new, packet, step)
        wakes: list[WakeRow] = []
        for row in new:
            assert row.id is not None
            due = parked_due(row.id)
            yield self._statement("move_due", row.id, due)
            yield self._statement("park", row.key_id, row.id, row.due)
            names = row.row[8], row.row[9]
            ahead = row.priority > 0
            wakes.append((due, row.channel_id, due, row.id, 1, 0, row.priority, ahead, *names))
        yield from self._insert("add_wakes", wakes)
        yield from self._add_message_events("published", [row.id for row in new if row.id])


def _moved(row: NewRow, owner: KeyOwner, due: int, now: int) -> list[WakeRow]:
    """One message fewer where it was, from just after the time at which its own wake counts it, and
    one more where it is."""
    names = row.row[8], row.row[9]
    before = owner.due + 1 if owner.due > now else now
    at, ahead = max(due, now), row.priority > 0 or due < now
    return [
        (before, row.channel_id, owner.due, owner.id, -1, 0, owner.priority, False, *names),
        (at, row.channel_id, due, owner.id, 1, 0, row.priority, ahead, *names),
    ]
