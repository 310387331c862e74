"""Publishing, the same on every engine: messages whose keys are in use, and what schedules fire."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from laneway.contract import BATCH
from laneway.errors import DatabaseFailed
from laneway.model import Draft, Published
from laneway.plan import Plan
from laneway.schedule import Schedule
from laneway.schedule_rules import Firing, draft_of
from laneway.topic import Subscription, TopicCopy, copies

from .keys import draft_key

# What becomes of messages whose keys are in use: the same on every engine.

Key = tuple[str, str]
"""A queue, and the name of a key in it."""

Publish = Callable[[Sequence[Draft]], Plan[Sequence[Published]]]
Replace = Callable[[Sequence[Draft]], Plan[list[Published | None]]]
"""For drafts with different keys, all of which are in use; None: it is free by now."""

_MOST_TRIES = 20
"""How often a key may change hands while it is looked at."""

PARKED_FROM = 95_617_584_000_000_000
"""Microseconds since 1970 until the year 5000: what waits behind a running message is scheduled for
this time and its own id, which no other message is."""
_PARKED_SPAN = 10**15


def parked_due(id: int) -> int:
    return PARKED_FROM + id % _PARKED_SPAN


def key_of(draft: Draft) -> Key | None:
    name = draft_key(draft)
    return None if name is None else (draft.queue, name)


_mode = itemgetter(-1)


def has_modes(drafts: Sequence[Draft]) -> bool:
    """Quick: every publish asks. A mode is a tuple that is not empty."""
    return any(map(_mode, drafts))


def chosen(drafts: Sequence[Draft]) -> list[int]:
    """For each draft, which one of the batch stands for it. Of those with the same key it is the
    last that replaces, as if they were published one after the other; if none replaces, the first.
    """
    by_key: dict[Key, int] = {}
    keys = [key_of(draft) for draft in drafts]
    for number, (key, draft) in enumerate(zip(keys, drafts, strict=True)):
        if key is not None and (draft.mode is not None or key not in by_key):
            by_key[key] = number
    return [number if key is None else by_key[key] for number, key in enumerate(keys)]


def publish_modes(
    drafts: Sequence[Draft], publish: Publish, replace: Replace
) -> Plan[list[Published]]:
    """Publishes those whose keys are free, and replaces the others where they say so. A key may be
    free by the time its message is to be replaced: then it is published after all."""
    stands_for = chosen(drafts)
    open_ones = sorted(set(stands_for))
    results: dict[int, Published] = {}
    for _ in range(_MOST_TRIES):
        rows: Iterable[Published | None]
        for part in _parts(open_ones):
            rows = yield from publish([drafts[n] for n in part])
            results |= zip(part, rows, strict=True)
        taken = [n for n in open_ones if results[n].existing and drafts[n].mode is not None]
        open_ones = []
        for part in _parts(taken):
            rows = yield from replace([drafts[n] for n in part])
            for n, result in zip(part, rows, strict=True):
                if result is None:
                    open_ones.append(n)
                else:
                    results[n] = result
        if not open_ones:
            return [
                results[which] if which == number else _other(results[which])
                for number, which in enumerate(stands_for)
            ]
    keys = ", ".join(repr(drafts[n].key) for n in open_ones[:3])
    raise DatabaseFailed(f"the key {keys} changed hands too often to be decided: publish again")


def _parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), BATCH):
        yield numbers[start : start + BATCH]


def _other(result: Published) -> Published:
    """Of a draft with the key of another one in the batch."""
    return result if result.id is None else Published(result.id, "existing")


def next_due(
    now: int, draft_due: int, old_due: int, published_at: int, debounce_for: int | None
) -> int:
    """When a message that is replaced is due; ``draft_due`` is now and the new delay."""
    if debounce_for is None or now >= published_at + debounce_for:
        return old_due
    return min(draft_due, published_at + debounce_for)


# Publish what schedules fire: the same on every engine.


class Publisher(NamedTuple):
    """What an engine has for it."""

    publish: Callable[[Sequence[Draft]], Plan[list[Published]]]
    publish_topic: Callable[[str, Sequence[Draft]], Plan[list[list[TopicCopy]]]]
    subscribers: Callable[[str], Plan[list[Subscription]]]
    """As whoever publishes may read them."""
    free_dead_keys: Callable[[Sequence[Key]], Plan[set[Key]]]
    """Takes the keys from dead letters that hold them; answers which were taken."""


def publish_now(publisher: Publisher, schedule: Schedule, now: datetime) -> Plan[list[Published]]:
    """One message now, beside the schedule's own ticks."""
    draft = draft_of(schedule, now)
    if schedule.topic is None:
        return (yield from _publish(publisher, [draft]))
    (copies,) = yield from _publish_topic(publisher, schedule.topic, [draft])
    return [Published(copy.id, copy.status) for copy in copies]


def publish_firings(publisher: Publisher, firings: Sequence[Firing]) -> Plan[list[list[bool]]]:
    """For each tick whether its channel, or any subscriber of its topic, accepted it."""
    plain = [draft for each in firings if each.schedule.topic is None for draft in each.drafts]
    rest = iter((yield from _publish(publisher, plain)))
    taken = []
    for each in firings:
        if each.schedule.topic is None:
            taken.append([not next(rest).refused for _ in each.ticks])
        else:
            rounds = yield from _publish_topic(publisher, each.schedule.topic, each.drafts)
            taken.append([not part or not all(c.refused for c in part) for part in rounds])
    return taken


def _publish(publisher: Publisher, drafts: Sequence[Draft]) -> Plan[list[Published]]:
    """A dead letter gives its key up to the next message of the schedule: otherwise one failure
    would silence the schedule for good. Redriven, the letter lives on without the key."""
    results = yield from publisher.publish(drafts)
    keys = [key_of(draft) for draft in drafts]
    held = {
        key
        for key, result in zip(keys, results, strict=True)
        if result.status == "existing" and key is not None
    }
    if not held:
        return results
    freed = yield from publisher.free_dead_keys(sorted(held))
    again = [n for n, key in enumerate(keys) if key in freed]
    if not again:
        return results
    published = yield from publisher.publish([drafts[n] for n in again])
    for n, result in zip(again, published, strict=True):
        results[n] = result
    return results


def _publish_topic(
    publisher: Publisher, topic: str, drafts: Sequence[Draft]
) -> Plan[list[list[TopicCopy]]]:
    """The same for each subscriber's copy. Published again, those that live already find their own
    key in use, so that none is doubled."""
    rounds = yield from publisher.publish_topic(topic, drafts)
    if not any(copy.status == "existing" for round in rounds for copy in round):
        return rounds
    # A subscriber may have a channel or a kind of its own, in which the key holds.
    subscribers = yield from publisher.subscribers(topic)
    keys = [{copy.queue: key_of(copy) for copy in copies(draft, subscribers)} for draft in drafts]
    held = {
        key
        for own, round in zip(keys, rounds, strict=True)
        for copy in round
        if copy.status == "existing" and (key := own.get(copy.queue)) is not None
    }
    freed = (yield from publisher.free_dead_keys(sorted(held))) if held else set()
    again = [n for n, own in enumerate(keys) if not freed.isdisjoint(own.values())]
    if not again:
        return rounds
    repeated = yield from publisher.publish_topic(topic, [drafts[n] for n in again])
    for n, round in zip(again, repeated, strict=True):
        new = {copy.queue: copy for copy in round}
        rounds[n] = [
            new.get(copy.queue, copy) if keys[n].get(copy.queue) in freed else copy
            for copy in rounds[n]
        ]
    return rounds
