"""publish: check keys and channels, then insert the messages and update the channels' counts.

Topics: subscriptions, and publishing a copy to each subscribed queue.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from laneway.contract import BATCH
from laneway.engines.key_modes import has_modes, publish_modes
from laneway.engines.times import micros
from laneway.model import Draft, Published, PublishStatus
from laneway.plan import Plan
from laneway.topic import Subscription, TopicCopy, copies

from .base import listed
from .channel_rows import CountChanges, FoundChannel, Names
from .replace import SqliteReplace

_PUBLISHED: PublishStatus = "published"
_PLAIN = 9  # columns that every message has
_NOTHING_MORE = (None,) * 4


class SqlitePublish(SqliteReplace):
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        if has_modes(drafts):
            return (yield from publish_modes(drafts, self._publish, self._replace))
        results: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            results += yield from self._publish(drafts[start : start + BATCH])
        return results

    def _publish(self, drafts: Sequence[Draft]) -> Plan[Sequence[Published]]:
        count = len(drafts)
        state = yield from self._begin_write(ids=count, turns=count)
        owners = yield from self._owners(drafts, state.now)
        names = list(dict.fromkeys((d.queue, d.channel) for d in drafts))
        channels = yield from self._channels(names, state.now)
        results = _results(drafts, state.message_id, owners, channels)
        changes = CountChanges()
        rows = _rows(drafts, results, channels, state.now, changes)
        if rows:
            yield from self._reserve(drafts, results)
            yield from self._add(rows)
            yield from self._now_waiting((row[0] for row in rows), state)
            yield from self._update_counts(changes, state)
            yield from self._add_events("published", [row[0] for row in rows], state)
        return results

    def _add(self, rows: Sequence[tuple[Any, ...]]) -> Plan[None]:
        """Most messages have no key, headers or expiry: inserting them without these columns is
        faster, because every null costs as much as two numbers."""
        if plain := [row[:_PLAIN] for row in rows if row[_PLAIN:] == _NOTHING_MORE]:
            yield self._many("add_plain_message", plain)
        if len(plain) < len(rows):
            yield self._many("add_message", [r for r in rows if r[_PLAIN:] != _NOTHING_MORE])
        yield self._statement("add_waiting", rows[0][0], rows[-1][0])

    def _owners(self, drafts: Sequence[Draft], now: int) -> Plan[dict[Names, int]]:
        """The ids of the messages that already have one of the keys."""
        wanted = {(d.queue, d.key) for d in drafts if d.key is not None}
        if not wanted:
            return {}
        rows = yield self._statement("live_keys", listed(wanted), now)
        return {(queue, key): message_id for queue, key, message_id in rows}

    def _reserve(self, drafts: Sequence[Draft], results: Sequence[Published]) -> Plan[None]:
        taken = [
            (draft.queue, draft.key, result.id)
            for draft, result in zip(drafts, results, strict=True)
            if draft.key is not None and result.status == _PUBLISHED
        ]
        if taken:
            yield self._statement("reserve_keys", listed(taken))


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
        key = None if draft.key is None else (draft.queue, draft.key)
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
                draft.key,
                micros(draft.key_window),
                draft.headers,
            )
        )
    return rows


def _time(at: datetime | None, length: timedelta | None, now: int) -> int | None:
    if at is not None:
        return micros(at)
    return None if length is None else now + micros(length)


class SqliteTopics(SqlitePublish):
    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._statement("subscribe", *subscription)

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._statement("unsubscribe", topic, queue)
        return bool(rows)

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._read_outside("subscriptions", topic)
        return [Subscription(*row) for row in rows]

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        yield from self._begin_write()
        rows = yield self._statement("subscriptions", topic)
        subscriptions = [Subscription(*row) for row in rows]
        if not subscriptions:
            return [[] for _ in drafts]
        flat = [copy for draft in drafts for copy in copies(draft, subscriptions)]
        results = iter((yield from self.publish(flat)))
        return [
            [
                TopicCopy(subscription.queue, *result)
                for subscription, result in zip(
                    subscriptions, islice(results, len(subscriptions)), strict=True
                )
            ]
            for _ in drafts
        ]
