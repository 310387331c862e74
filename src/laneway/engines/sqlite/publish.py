"""publish: check keys and channels, then insert the messages and update the channels' counts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from laneway.contract import BATCH
from laneway.engines.keys import draft_key
from laneway.engines.publish import Key, has_modes, key_of, next_due, parked_due, publish_modes
from laneway.engines.times import micros
from laneway.model import Draft, Published, PublishStatus
from laneway.plan import Plan
from laneway.topic import Subscription, TopicCopy, copies

from .base import SqliteSql, WriteState, listed
from .channels import CountChanges, FoundChannel, Names, SqliteChannelRows, SqliteLanes
from .events import SqliteEventOutbox


class SqliteKeyOwner(NamedTuple):
    """A row of key_owners."""

    queue: str
    key: str
    id: int
    expires_at: int | None
    behind: int | None
    behind_due: int | None
    channel: str | None
    kind: str | None
    dead: int
    leased: int
    channel_id: int
    priority: int
    due: int
    published_at: int

    def replaced_by(self, draft: Draft) -> bool:
        """Within its window nothing is published, and another channel's message is not ours."""
        return self.expires_at is None and (self.channel, self.kind) == (draft.channel, draft.kind)


class SqliteReplace:
    """Part of publish: messages whose keys are in use, and that replace what has them.

    A leased message is never touched: the new one waits behind it, scheduled for a time that never
    comes, until that one has ended (``_start_behind``)."""

    def __init__(
        self, sql: SqliteSql, rows: SqliteChannelRows, outbox: SqliteEventOutbox, lanes: SqliteLanes
    ) -> None:
        self._sql = sql
        self._rows = rows
        self._outbox = outbox
        self._lanes = lanes

    def replace(self, drafts: Sequence[Draft]) -> Plan[list[Published | None]]:
        """One after the other: a publish of many keys that are in use is rare."""
        count = len(drafts)
        state = yield from self._sql.begin_write(ids=count, turns=count)
        rows = yield self._sql.statement("key_owners", listed(map(key_of, drafts)))
        owners: dict[Key, SqliteKeyOwner] = {(row[0], row[1]): SqliteKeyOwner(*row) for row in rows}
        changes, parked, more = CountChanges(), list[int](), Counter[int]()
        results: list[Published | None] = []
        for number, draft in enumerate(drafts):
            owner = owners.get(key_of(draft) or ("", ""))
            if owner is None or not owner.replaced_by(draft):
                results.append(None if owner is None else Published(owner.id, "existing"))
            elif owner.dead:
                yield self._sql.statement("free_dead_key", owner.queue, owner.key)
                yield self._sql.statement("forget_dead_key", owner.id)
                results.append(None)
            else:
                found = yield from self._rows.channels([(draft.queue, draft.channel)], state.now)
                channel = found[draft.queue, draft.channel]
                if channel.closing:
                    results.append(Published(None, "closed"))
                elif not owner.leased:
                    yield from self._change(owner, draft, changes, state)
                    results.append(Published(owner.id, "replaced"))
                elif channel.room is not None and channel.room <= more[channel.id]:
                    results.append(Published(None, "full"))
                else:
                    parked.append(state.message_id + number)
                    more[channel.id] += 1
                    yield from self._park(parked[-1], draft, channel, changes, state)
                    results.append(Published(parked[-1], "published"))
        yield from self._rows.update_counts(changes, state)
        yield from self._outbox.add_events("published", parked, state)
        return results

    def _change(
        self, owner: SqliteKeyOwner, draft: Draft, changes: CountChanges, state: WriteState
    ) -> Plan[None]:
        """A message that waits gets the new content, and perhaps another place."""
        assert draft.mode is not None
        bound = None if draft.mode.debounce_for is None else micros(draft.mode.debounce_for)
        wanted = state.now + micros(draft.delay) if draft.delay else state.now
        old = owner.due if owner.behind_due is None else owner.behind_due
        due = next_due(state.now, wanted, old, owner.published_at, bound)
        if owner.behind is not None:
            yield self._sql.statement("set_behind_due", owner.queue, owner.key, due)
            due = owner.due
        if due != owner.due:  # with another time it asks shared limits again
            yield self._sql.statement("delete_limit_waits", listed([owner.id]))
        place = (owner.channel_id, owner.priority, owner.due, owner.id)
        yield self._sql.many("delete_waiting", [place])
        yield from self._lanes.no_longer_waiting([owner.id], state)
        yield self._sql.statement(
            "replace_message",
            owner.id,
            draft.priority,
            due,
            draft.max_attempts,
            draft.content_type,
            draft.payload,
            _expiry(draft, state.now),
            micros(draft.key_window),
            draft.headers,
        )
        yield self._sql.statement("add_waiting_again", listed([owner.id]))
        yield from self._lanes.now_waiting([owner.id], state)
        changes.add(owner.channel_id, priority=draft.priority, due=due)

    def _park(
        self,
        id: int,
        draft: Draft,
        channel: FoundChannel,
        changes: CountChanges,
        state: WriteState,
    ) -> Plan[None]:
        """A new message, behind the running one that has its key."""
        due = parked_due(id)
        row: tuple[Any, ...] = (
            *(id, channel.id, draft.priority, due, state.now, draft.max_attempts, draft.kind),
            *(draft.content_type, draft.payload, _expiry(draft, state.now), draft_key(draft)),
            *(micros(draft.key_window), draft.headers),
        )
        yield self._sql.statement("add_message", *row)
        yield self._sql.statement("add_waiting", id, id)
        yield from self._lanes.now_waiting([id], state)
        later = state.now + micros(draft.delay) if draft.delay else state.now
        later = later if draft.at is None else micros(draft.at)
        yield self._sql.statement("park", draft.queue, draft_key(draft), id, later)
        changes.add(channel.id, more=1, priority=draft.priority, due=due)


def _expiry(draft: Draft, now: int) -> int | None:
    if draft.expires_at is not None:
        return micros(draft.expires_at)
    return None if draft.expires_in is None else now + micros(draft.expires_in)


# publish: check keys and channels, then insert the messages and update the channels' counts.
#
# Topics: subscriptions, and publishing a copy to each subscribed queue.

_PUBLISHED: PublishStatus = "published"
_PLAIN = 9  # columns that every message has
_NOTHING_MORE = (None,) * 4


class SqlitePublish:
    def __init__(
        self,
        sql: SqliteSql,
        rows: SqliteChannelRows,
        replace: SqliteReplace,
        lanes: SqliteLanes,
        outbox: SqliteEventOutbox,
    ) -> None:
        self._sql = sql
        self._rows = rows
        self._replace = replace
        self._lanes = lanes
        self._outbox = outbox

    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        if has_modes(drafts):
            return (yield from publish_modes(drafts, self._publish, self._replace.replace))
        results: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            results += yield from self._publish(drafts[start : start + BATCH])
        return results

    def publish_bulk(self, drafts: Iterable[Draft], count: int) -> Plan[list[Published]]:
        return self.publish(list(drafts))

    def _publish(self, drafts: Sequence[Draft]) -> Plan[Sequence[Published]]:
        count = len(drafts)
        state = yield from self._sql.begin_write(ids=count, turns=count)
        owners = yield from self._owners(drafts, state.now)
        names = list(dict.fromkeys((d.queue, d.channel) for d in drafts))
        channels = yield from self._rows.channels(names, state.now)
        results = _results(drafts, state.message_id, owners, channels)
        changes = CountChanges()
        rows = _rows(drafts, results, channels, state.now, changes)
        if rows:
            yield from self._reserve(drafts, results)
            yield from self._add(rows)
            yield from self._lanes.now_waiting((row[0] for row in rows), state)
            yield from self._rows.update_counts(changes, state)
            yield from self._outbox.add_events("published", [row[0] for row in rows], state)
        return results

    def _add(self, rows: Sequence[tuple[Any, ...]]) -> Plan[None]:
        """Most messages have no key, headers or expiry: inserting them without these columns is
        faster, because every null costs as much as two numbers."""
        if plain := [row[:_PLAIN] for row in rows if row[_PLAIN:] == _NOTHING_MORE]:
            yield self._sql.many("add_plain_message", plain)
        if len(plain) < len(rows):
            yield self._sql.many("add_message", [r for r in rows if r[_PLAIN:] != _NOTHING_MORE])
        yield self._sql.statement("add_waiting", rows[0][0], rows[-1][0])

    def _owners(self, drafts: Sequence[Draft], now: int) -> Plan[dict[Names, int]]:
        """The ids of the messages that already have one of the keys."""
        wanted = {key for d in drafts if (key := key_of(d)) is not None}
        if not wanted:
            return {}
        rows = yield self._sql.statement("live_keys", listed(wanted), now)
        return {(queue, key): message_id for queue, key, message_id in rows}

    def _reserve(self, drafts: Sequence[Draft], results: Sequence[Published]) -> Plan[None]:
        taken = [
            (*key, result.id)
            for draft, result in zip(drafts, results, strict=True)
            if (key := key_of(draft)) is not None and result.status == _PUBLISHED
        ]
        if taken:
            yield self._sql.statement("reserve_keys", listed(taken))


def _results(
    drafts: Sequence[Draft],
    first_id: int,
    owners: dict[Names, int],
    channels: dict[Names, FoundChannel],
) -> list[Published]:
    """The result for each, in order. Drafts with the same key get the result of the first one."""
    results = []
    by_key: dict[Names, Published] = {key: Published(id, "existing") for key, id in owners.items()}
    accepted = dict.fromkeys(channels, 0)
    for number, draft in enumerate(drafts):
        key = key_of(draft)
        result = by_key.get(key) if key else None
        if result is None:
            channel = draft.queue, draft.channel
            result = _result(channels[channel], accepted[channel], first_id + number)
            accepted[channel] += result.id is not None
            if key:
                repeated: PublishStatus = "existing" if result.id is not None else result.status
                by_key[key] = Published(result.id, repeated)
        results.append(result)
    return results


def _result(channel: FoundChannel, before: int, id: int) -> Published:
    """``before``: how many of this batch the channel has accepted already."""
    if channel.closing:
        return Published(None, "closed")
    if channel.room is not None and before >= channel.room:
        return Published(None, "full")
    return Published(id, _PUBLISHED)


def _rows(
    drafts: Sequence[Draft],
    results: Sequence[Published],
    channels: dict[Names, FoundChannel],
    now: int,
    changes: CountChanges,
) -> list[tuple[Any, ...]]:
    """The rows to insert; adds them to ``changes``."""
    rows = []
    for draft, result in zip(drafts, results, strict=True):
        if result.status != _PUBLISHED:
            continue
        channel_id = channels[draft.queue, draft.channel].id
        due = _time(draft.at, draft.delay, now)
        due = now if due is None else due
        changes.add(channel_id, more=1, priority=draft.priority, due=due)
        rows.append(
            (
                result.id,
                channel_id,
                draft.priority,
                due,
                now,
                draft.max_attempts,
                draft.kind,
                draft.content_type,
                draft.payload,
                _time(draft.expires_at, draft.expires_in, now),
                draft_key(draft),
                micros(draft.key_window),
                draft.headers,
            )
        )
    return rows


def _time(at: datetime | None, length: timedelta | None, now: int) -> int | None:
    if at is not None:
        return micros(at)
    return None if length is None else now + micros(length)


class SqliteTopics:
    def __init__(self, sql: SqliteSql, publish: SqlitePublish) -> None:
        self._sql = sql
        self._publish = publish

    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._sql.statement("subscribe", *subscription)

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._sql.statement("unsubscribe", topic, queue)
        return bool(rows)

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._sql.read_outside("subscriptions", topic)
        return [Subscription(*row) for row in rows]

    def subscribers(self, topic: str) -> Plan[list[Subscription]]:
        rows = yield self._sql.statement("subscriptions", topic)
        return [Subscription(*row) for row in rows]

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        yield from self._sql.begin_write()
        subscriptions = yield from self.subscribers(topic)
        if not subscriptions:
            return [[] for _ in drafts]
        flat = [copy for draft in drafts for copy in copies(draft, subscriptions)]
        results = iter((yield from self._publish.publish(flat)))
        return [
            [
                TopicCopy(subscription.queue, *result)
                for subscription, result in zip(
                    subscriptions, islice(results, len(subscriptions)), strict=True
                )
            ]
            for _ in drafts
        ]
