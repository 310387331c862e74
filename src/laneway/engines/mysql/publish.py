"""publish: append messages, and one wake for each channel, priority and time concerned.

Invariant: it takes no lock that another publisher or a claim waits for, except that two open
publishes of the same key wait for each other, and that one which replaces a message locks its
channel, as a claim does.

Topics: a message becomes one copy for each subscribed queue; all are published together.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from laneway.contract import BATCH
from laneway.engines.publish import PARKED_FROM, has_modes, next_due, parked_due, publish_modes
from laneway.engines.times import micros
from laneway.errors import DatabaseFailed
from laneway.model import Draft, Published
from laneway.plan import Plan, Row
from laneway.topic import TOPIC_BATCH, Subscription, TopicCopy, copies

from .append import MysqlAppend, NewRow, WakeRow, new_rows
from .base import MysqlChannelLocks, MysqlSql, data, pair_id, repeatable, text
from .events import MysqlEventOutbox

# In these levels a plain read sees what is committed now: no old snapshot, nothing uncommitted.
_READS_COMMITTED = ("READ-COMMITTED", "SERIALIZABLE")


class MysqlKeys:
    """Keys: of two publishes with the same live key exactly one publishes; the other gets its
    id."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def reserve_keys(self, keyed: Sequence[NewRow], now: int) -> Plan[None]:
        """Reserves the keys of the batch, or finds out which messages have them.

        A key that is taken is only read, never locked. Keys that seem free are inserted in the
        order of their ids; from then on we hold the lock on their rows and the result is final. In
        a caller's transaction that reads an old snapshot, or uncommitted changes, a key that seems
        taken may be free, so there the plain read does not count.
        """
        open_keys = _first_of_each_key(keyed)
        rows = yield self._sql.statement("live_keys", list(open_keys))
        seen = [seen for *seen, isolation in rows if text(isolation) in _READS_COMMITTED]
        _remove_taken(open_keys, seen, now)
        if not open_keys:
            return
        # A number that nobody else uses: reading it back tells whether the row is ours.
        mark = -1 - secrets.randbits(62)
        wanted = [(id, row.queue, row.key, mark) for id, row in sorted(open_keys.items())]
        yield from self._sql.insert("reserve_keys", wanted)
        rows = yield self._sql.statement("reserved_keys", [row[0] for row in wanted])
        _remove_taken(open_keys, [row for row in rows if int(row[1]) != mark], now)

    def assign_keys(self, keyed: Sequence[NewRow]) -> Plan[None]:
        """The key of a published message gets its id; that of a refused one is free again."""
        ours = sorted(
            (row.key_id, row.queue, row.key, row.id)
            for row in keyed
            if row.status is None and not row.first
        )
        yield from self._sql.insert("assign_keys", ours)
        refused = sorted(row.key_id for row in keyed if row.status in ("full", "closed"))
        if refused:
            yield self._sql.statement("delete_keys", refused)


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


class MysqlPublishState:
    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def publish_state(self) -> Plan[Row]:
        """The columns of publish_state, once a life of the server has begun."""
        ((*state, life),) = yield self._sql.statement("publish_state", self._sql.now())
        yield from self._sql.begun_life(life)
        return state


class MysqlReplace:
    """Part of publish: messages whose keys are in use, and that replace what has them.

    Invariant: a leased message is never touched. The new one waits behind it, scheduled for a time
    that never comes, until that one has ended (``_start_behind``). Locks channels, as a claim does,
    then keys, both in the order of their ids."""

    def __init__(
        self,
        sql: MysqlSql,
        locks: MysqlChannelLocks,
        state: MysqlPublishState,
        append: MysqlAppend,
        outbox: MysqlEventOutbox,
    ) -> None:
        self._sql = sql
        self._locks = locks
        self._state = state
        self._append = append
        self._outbox = outbox

    def replace(self, drafts: Sequence[Draft]) -> Plan[list[Published | None]]:
        channels = {(draft.queue.encode(), draft.channel.encode()) for draft in drafts}
        yield from self._locks.lock_channels(channels)
        # The time is read once the channels are ours: later than that of every claim that had them.
        state = yield from self._state.publish_state()
        now, packet, step = (int(value) for value in state[:3])
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
        rows = yield self._sql.statement("lock_taken_keys", sorted(batch))
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
        rows = yield self._sql.statement("key_messages", sorted(held))
        owners = {
            bytes(held[int(row[0])][0]): KeyOwner(int(row[0]), *held[int(row[0])][3:5], *row[1:])
            for row in rows
        }
        keys = {int(row[1]): bytes(row[0]) for row in held.values() if bytes(row[0]) not in owners}
        if keys:
            rows = yield self._sql.statement("lock_dead_owners", sorted(keys))
            for id, queue, channel, kind in rows:
                row = batch[keys[int(id)]]
                if (row.channel_id, row.row[10]) == (pair_id(queue, channel), kind):
                    # A dead letter gives its key up.
                    yield self._sql.statement("free_dead_keys", [row.key_id], [int(id)])
                    yield self._sql.statement("forget_dead_keys", [int(id)])
                    del taken[row.key_id]
        return taken, owners

    def _closed(self, rows: Sequence[NewRow]) -> Plan[set[bytes]]:
        if not rows:
            return set()
        found = yield self._sql.statement(
            "refusing_channels", sorted({row.channel_id for row in rows})
        )
        return {bytes(id) for id, closing, _ in found if closing}

    def _change(self, row: NewRow, owner: KeyOwner, now: int, bound: int | None) -> Plan[None]:
        """A message that waits gets the new content, and perhaps another place."""
        row.id = owner.id
        old = owner.due if owner.behind_due is None else owner.behind_due
        due = next_due(now, row.due, old, owner.published_at, bound)
        if owner.behind is not None:
            yield self._sql.statement("set_behind_due", row.key_id, due)
            due = owner.due
        if due != owner.due:  # with another time it asks shared limits again
            yield self._sql.statement("delete_limit_waits", [owner.id])
        yield from self._sql.check_fits([row.row[-1]])
        expires_at, window, attempts, priority = row.row[4:8]
        content = (expires_at, window, attempts, priority, *row.row[12:15])
        yield self._sql.statement("replace_message", owner.id, due, *content)
        yield self._sql.statement("delete_expiries", [owner.id])
        if expires_at is not None:
            yield from self._sql.insert("add_expiries", [(owner.id, expires_at)])
        if (due, priority) != (owner.due, owner.priority):
            yield from self._sql.insert("add_wakes", _moved(row, owner, due, now))

    def _park(self, leased: Sequence[NewRow], now: int, packet: int, step: int) -> Plan[None]:
        """New messages, behind the running ones that have their keys."""
        if not leased:
            return
        yield from self._append.refuse(leased)
        new = [row for row in leased if row.status is None]
        for row in new:
            row.row = (*row.row[:_DUE], PARKED_FROM, *row.row[_DUE + 1 :])
        yield from self._append.add_messages(new, packet, step)
        wakes: list[WakeRow] = []
        for row in new:
            assert row.id is not None
            due = parked_due(row.id)
            yield self._sql.statement("move_due", row.id, due)
            yield self._sql.statement("park", row.key_id, row.id, row.due)
            names = row.row[8], row.row[9]
            ahead = row.priority > 0
            wakes.append((due, row.channel_id, due, row.id, 1, 0, row.priority, ahead, *names))
        yield from self._sql.insert("add_wakes", wakes)
        yield from self._outbox.add_message_events("published", [row.id for row in new if row.id])


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


class MysqlPublish:
    def __init__(
        self,
        state: MysqlPublishState,
        append: MysqlAppend,
        replace: MysqlReplace,
        keys: MysqlKeys,
        outbox: MysqlEventOutbox,
    ) -> None:
        self._state = state
        self._append = append
        self._replace = replace
        self._keys = keys
        self._outbox = outbox

    @repeatable
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        if has_modes(drafts):
            return (yield from publish_modes(drafts, self._publish, self._replace.replace))
        published: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            published += yield from self._publish(drafts[start : start + BATCH])
        return published

    def publish_bulk(self, drafts: Iterable[Draft], count: int) -> Plan[list[Published]]:
        return self.publish(list(drafts))

    def _publish(self, drafts: Sequence[Draft]) -> Plan[Sequence[Published]]:
        state = yield from self._state.publish_state()
        now, packet, step, any_gated, any_listener, by_kind = state
        batch = new_rows(drafts, int(now))
        keyed = [row for row in batch if row.key is not None]
        if keyed:
            yield from self._keys.reserve_keys(keyed, int(now))
        if any_gated:
            yield from self._append.refuse(batch)
        new = [row for row in batch if row.status is None]
        queues = (yield from self._append.queues_by_kind()) if by_kind else set()
        yield from self._append.add_messages(new, int(packet), int(step))
        yield from self._append.add_wakes(new, int(now), queues)
        if any_listener:
            ids = [row.id for row in new if row.id is not None]
            yield from self._outbox.add_message_events("published", ids)
        if keyed:
            yield from self._keys.assign_keys(keyed)
        return [row.published() for row in batch]


class MysqlTopics:
    def __init__(self, sql: MysqlSql, publish: MysqlPublish) -> None:
        self._sql = sql
        self._publish = publish

    @repeatable
    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._sql.statement("subscribe", [tuple(map(data, subscription))])

    @repeatable
    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._sql.statement("lock_subscription", topic.encode(), queue.encode())
        if rows:
            yield self._sql.statement("unsubscribe", topic.encode(), queue.encode())
        return bool(rows)

    @repeatable
    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        return (yield from self._subscriptions(topic))

    def subscribers(self, topic: str) -> Plan[list[Subscription]]:
        return self._subscriptions(topic)

    @repeatable
    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        subscribers = yield from self._subscriptions(topic)
        copied: list[list[TopicCopy]] = []
        for start in range(0, len(drafts), TOPIC_BATCH):
            batch = drafts[start : start + TOPIC_BATCH]
            rounds = [copies(draft, subscribers) for draft in batch]
            published = iter(
                (yield from self._publish.publish([c for part in rounds for c in part]))
            )
            copied += [[TopicCopy(c.queue, *next(published)) for c in part] for part in rounds]
        return copied

    def _subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._sql.statement("subscriptions", data(topic))
        return [Subscription(*map(text, row)) for row in rows]
