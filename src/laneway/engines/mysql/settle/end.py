"""How leases and messages end: what the settling verbs, cancel and upkeep share."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from laneway.engines.mysql.append import WakeRow
from laneway.engines.mysql.base import ChannelRef, MysqlSql, pair_id
from laneway.engines.mysql.events import MysqlEventOutbox
from laneway.engines.mysql.flows_release import MysqlNodeEnds
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


class MysqlBehind:
    """Keys of messages that end, and messages that wait behind them until then.

    Invariant: of the messages of a key at most one runs. Who parks a message behind another holds
    the key's row, and so does whoever ends a message with a key: either the parked one is found
    here, or the other finds that the message has ended. Locks keys in the order of their ids, then
    messages.
    """

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def lock_keys(self, ended: Sequence[EndedKey]) -> Plan[list[EndedKey]]:
        """The same, with who has the keys now; nobody else can change that any more."""
        ids = sorted(key.key_id for key in ended)
        rows = yield self._sql.statement("lock_keys", ids)
        found = {bytes(row[0]): row[1:4] for row in rows}
        nobody = (None, None, None)
        return [EndedKey(*key[:4], *found.get(key.key_id, nobody)) for key in ended]

    def start_behind(self, ended: Iterable[EndedKey], now: int) -> Plan[list[int]]:
        """Messages that waited behind those that ended are due from now on. Returns those that
        ended. The keys are locked."""
        fronts = [key for key in ended if key.behind == key.id]
        if not fronts:
            return []
        dues = {key.owner: max(key.behind_due or now, now) for key in fronts}
        rows = yield self._sql.statement("lock_parked", sorted(id for id in dues if id is not None))
        parked = [ParkedMessage(*row) for row in rows]
        wakes: list[WakeRow] = []
        for message in parked:
            due = dues[message.id]
            yield self._sql.statement("move_due", message.id, due)
            wakes += _wakes(message, due)
        if own := sorted(message.wake_id for message in parked if message.wake_id is not None):
            yield self._sql.statement("delete_own_wakes", own)
        yield from self._sql.insert("add_wakes", wakes)
        yield self._sql.statement("nothing_in_front", sorted(key.key_id for key in fronts))
        return [key.id for key in fronts]

    def give_back_keys(self, ended: Iterable[EndedKey]) -> Plan[None]:
        """The key of a message that ended behind a running one belongs to that one again."""
        gone = {key.id for key in ended}
        ids = sorted(
            key.key_id
            for key in ended
            if key.owner == key.id and key.behind is not None and key.behind not in gone
        )
        for id in ids:
            yield self._sql.statement("give_key_to_running", id)


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


FreedSlot = tuple[ChannelRef, int | None]
"""A counted lease that ended: its channel, and when its handler began; None if it did not."""

HistoryRow = tuple[Any, ...]
"""The columns of add_history."""


class LostLease(NamedTuple):
    """A lease that a verb was called with and that is no longer its holder's."""

    id: int
    fence: int


class MysqlSettleEnd:
    """What the verbs that end leases or messages have in common."""

    def __init__(self, sql: MysqlSql, behind: MysqlBehind) -> None:
        self._sql = sql
        self._behind = behind

    def release_keys(self, ended: Sequence[EndedKey], now: int) -> Plan[None]:
        """The keys are free, or live on for their window. What waited behind a message starts."""
        if any(key.behind is not None for key in ended):
            yield from self._behind.start_behind(ended, now)
            yield from self._behind.give_back_keys(ended)
        windows: dict[int | None, list[tuple[bytes, int]]] = defaultdict(list)
        for key in ended:
            windows[key.window].append((key.key_id, key.id))
        for window, pairs in windows.items():
            ids, messages = zip(*sorted(pairs), strict=True)
            if window is None:
                yield self._sql.statement("release_keys", ids, messages)
            else:
                yield self._sql.statement("keep_keys", ids, messages, now + window)

    def free_slots(self, freed: Iterable[FreedSlot], now: int) -> Plan[None]:
        """Tells channels that counted leases of theirs ended, and how long their handlers took.
        Those that did not begin have a wake of their own. No message has an id below zero."""
        sums: dict[tuple[ChannelRef, bool], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for channel, began in freed:
            count, took = sums[channel, began is None]
            run = 0 if began is None else max(1, now - began)
            sums[channel, began is None] = count + 1, took + run
        rows: list[WakeRow] = [
            (now, id, now, -took, 0, count, 0, True, queue, name)
            for ((id, queue, name), _), (count, took) in sums.items()
        ]
        yield from self._sql.insert("add_wakes", rows)

    def add_stale_history(self, lost: Sequence[LostLease], verb: str) -> Plan[None]:
        """Notes in the history who came too late, and with which verb."""
        if not lost:
            return
        ids = sorted({lease.id for lease in lost})
        rows = yield self._sql.statement("messages_of_lost_leases", ids, self._sql.now())
        now, kept = int(rows[0][5]), bytes(rows[0][6])
        if kept == b"none":
            return
        known = {int(row[0]): row for row in rows[1:]}
        unknown = (None, 0, b"", b"", b"")
        entries = []
        for id, fence in dict.fromkeys(lost):
            _, attempt, queue, channel, kind = known.get(id, unknown)[:5]
            empty = (None, None, None, None)
            where = (False, False, None, queue, channel, kind, None)
            why = (b"stale", verb.encode(), None, None, None)
            entries.append((id, fence, attempt, *empty, now, None, *where, *why))
        yield from self._sql.insert("add_history", entries)

    def count_dead(self, channels: Iterable[tuple[bytes, bytes]], sign: int) -> Plan[None]:
        """Adds to the dead-letter counts of the channels (queue, name), once for each item."""
        counts: dict[tuple[bytes, bytes], int] = defaultdict(int)
        for channel in channels:
            counts[channel] += sign
        if counts:
            rows = [(*channel, n) for channel, n in counts.items()]
            yield from self._sql.insert("add_dead_counts", rows)


# Leases that are about to end, by their holder or by upkeep, as the statements read them.


class CompletedLease(NamedTuple):
    """A row of lock_leases. ``tied``: it holds a slot of its channel, or its message has a key.
    ``node``: it belongs to a flow."""

    id: int
    fence: int
    tied: bool
    node: bool
    now: int
    history: bytes

    @classmethod
    def read(cls, text: bytes | str) -> "CompletedLease":
        plain = text.decode() if isinstance(text, bytes) else text
        id, fence, tied, node, now, history = plain.split(",")
        flags = tied == "1", node == "1"
        return cls(int(id), int(fence), *flags, int(now), history.encode())


class SlotAndKey(NamedTuple):
    """A row of lease_slots_and_keys."""

    id: int
    channel_id: bytes
    counted: int
    queue: bytes
    channel: bytes
    key: bytes | None
    key_window: int | None
    owner: int | None
    behind: int | None
    behind_due: int | None
    claimed_at: int

    @property
    def channel_ref(self) -> ChannelRef:
        return self.channel_id, self.queue, self.channel

    @property
    def ended_key(self) -> EndedKey | None:
        if self.key is None:
            return None
        own = (self.id, self.queue, self.key, self.key_window)
        return EndedKey(*own, self.owner, self.behind, self.behind_due)


class EndedLease(NamedTuple):
    """A row of lock_leases_and_messages, or of lock_expired_leases."""

    id: int
    fence: int
    channel_id: bytes
    counted: int
    queue: bytes
    channel: bytes
    key: bytes | None
    key_window: int | None
    now: int
    history: bytes
    claimed_at: int
    worker: bytes
    kind: bytes
    priority: int
    due: int
    published_at: int
    first_published_at: int
    attempt: int
    spent: int
    max_attempts: int
    payload_size: int
    flow_id: int | None

    @property
    def channel_ref(self) -> ChannelRef:
        return self.channel_id, self.queue, self.channel

    def history_row(
        self, outcome: bytes, *, dead: bool = False, reason: Any = None, error: Any = (None, None)
    ) -> HistoryRow:
        """Its attempt in the history. It is not the end of the message."""
        return (
            self.id,
            self.fence,
            self.attempt + 1,
            self.first_published_at,
            self.published_at,
            self.due,
            self.claimed_at,
            self.now,
            self.payload_size,
            False,
            dead,
            self.priority,
            self.queue,
            self.channel,
            self.kind,
            self.worker,
            outcome,
            reason,
            *error,
            None,
        )

    def waited(self, row: HistoryRow, milliseconds: int | None) -> HistoryRow:
        """The row, with the time at which the handler began."""
        if milliseconds is None:
            return row
        return *row[:-1], min(self.claimed_at + 1000 * milliseconds, self.now)


def ended_key(id: int, queue: bytes, key: bytes | None, window: int | None) -> EndedKey | None:
    return None if key is None else EndedKey(id, queue, key, window)


class Requeue(NamedTuple):
    """A message that waits again, until ``due``. ``counts``: the attempt is counted; ``fails``: it
    also uses up one of max_attempts, otherwise the count of failed attempts starts again at 0."""

    lease: EndedLease
    due: int
    counts: bool
    fails: bool


class Cause(NamedTuple):
    """Why a message became a dead letter."""

    reason: bytes
    error_type: bytes | None
    error: bytes | None
    traceback: bytes | None = None


class MysqlRequeue:
    """What becomes of messages whose leases just ended: they wait again, or become dead letters."""

    def __init__(
        self,
        sql: MysqlSql,
        outbox: MysqlEventOutbox,
        ends: MysqlSettleEnd,
        nodes: MysqlNodeEnds,
        behind: MysqlBehind,
    ) -> None:
        self._sql = sql
        self._outbox = outbox
        self._ends = ends
        self._nodes = nodes
        self._behind = behind

    def requeue(self, requeues: Sequence[Requeue]) -> Plan[None]:
        """Adds a wake for each; rewrites a message's row only if it changes."""
        groups: dict[tuple[int, bool, bool], list[int]] = defaultdict(list)
        for requeue in requeues:
            if requeue.counts or requeue.due != requeue.lease.due:
                group = requeue.due, requeue.counts, requeue.fails
                groups[group].append(requeue.lease.id)
        for (due, counts, fails), ids in groups.items():
            yield self._sql.statement("requeue", ids, due, int(counts), int(fails))
        yield from self._sql.insert("add_wakes", [_wake(requeue) for requeue in requeues])

    def add_dead_letters(self, dying: Sequence[tuple[EndedLease, Cause]], now: int) -> Plan[None]:
        yield from self._outbox.add_message_events("dead", [lease.id for lease, _ in dying])
        groups: dict[Cause, list[int]] = defaultdict(list)
        for lease, cause in dying:
            groups[cause].append(lease.id)
        for cause, ids in groups.items():
            yield self._sql.statement("add_dead_letters", ids, now, *cause)
            yield self._sql.statement("delete_messages", ids)
        yield from self._ends.count_dead(((lease.queue, lease.channel) for lease, _ in dying), 1)
        keys = [EndedKey(x.id, x.queue, x.key, None) for x, _ in dying if x.key is not None]
        if keys:
            keys = yield from self._behind.lock_keys(keys)
            if passed_on := (yield from self._behind.start_behind(keys, now)):
                yield self._sql.statement("forget_dead_keys", passed_on)
        nodes = [lease.id for lease, _ in dying if lease.flow_id is not None]
        yield from self._nodes.nodes_ended(nodes, {}, "dead", now)


def _wake(requeue: Requeue) -> WakeRow:
    lease, due = requeue.lease, requeue.due
    at = max(due, lease.now)
    ahead = lease.priority > 0 or due < at
    names = lease.queue, lease.channel
    return at, lease.channel_id, due, lease.id, 1, 0, lease.priority, ahead, *names
