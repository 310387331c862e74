"""Publish what schedules fire: the same on every engine."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from laneway.model import Draft, Published
from laneway.plan import Plan
from laneway.schedule import Schedule
from laneway.schedule_rules import Firing, draft_of
from laneway.topic import TopicCopy

Key = tuple[str, str]
"""A queue and a key."""


class Publisher(Protocol):
    """The verbs of an engine that are needed here."""

    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]: ...

    def free_dead_keys(self, keys: Sequence[Key]) -> Plan[set[Key]]:
        """Takes the keys from dead letters that hold them; answers which were taken."""
        ...

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]: ...


def publish_now(engine: Publisher, schedule: Schedule, now: datetime) -> Plan[list[Published]]:
    """One message now, beside the schedule's own ticks."""
    draft = draft_of(schedule, now)
    if schedule.topic is None:
        return (yield from _publish(engine, [draft]))
    (copies,) = yield from _publish_topic(engine, schedule.topic, [draft])
    return [Published(copy.id, copy.status) for copy in copies]


def publish_firings(engine: Publisher, firings: Sequence[Firing]) -> Plan[list[list[bool]]]:
    """For each tick whether its channel, or any subscriber of its topic, accepted it."""
    plain = [draft for each in firings if each.schedule.topic is None for draft in each.drafts]
    rest = iter((yield from _publish(engine, plain)))
    taken = []
    for each in firings:
        if each.schedule.topic is None:
            taken.append([not next(rest).refused for _ in each.ticks])
        else:
            rounds = yield from _publish_topic(engine, each.schedule.topic, each.drafts)
            taken.append([not part or not all(c.refused for c in part) for part in rounds])
    return taken


def _publish(engine: Publisher, drafts: Sequence[Draft]) -> Plan[list[Published]]:
    """A dead letter gives its key up to the next message of the schedule: otherwise one failure
    would silence the schedule for good. Redriven, the letter lives on without the key."""
    results = yield from engine.publish(drafts)
    held = {
        (draft.queue, draft.key)
        for draft, result in zip(drafts, results, strict=True)
        if result.status == "existing" and draft.key is not None
    }
    if not held:
        return results
    freed = yield from engine.free_dead_keys(sorted(held))
    again = [n for n, draft in enumerate(drafts) if (draft.queue, draft.key) in freed]
    if not again:
        return results
    published = yield from engine.publish([drafts[n] for n in again])
    for n, result in zip(again, published, strict=True):
        results[n] = result
    return results


def _publish_topic(
    engine: Publisher, topic: str, drafts: Sequence[Draft]
) -> Plan[list[list[TopicCopy]]]:
    """The same for each subscriber's copy. Published again, those that live already find their own
    key in use, so that none is doubled."""
    rounds = yield from engine.publish_topic(topic, drafts)
    held = {
        (copy.queue, draft.key)
        for draft, copies in zip(drafts, rounds, strict=True)
        for copy in copies
        if copy.status == "existing" and draft.key is not None
    }
    freed = (yield from engine.free_dead_keys(sorted(held))) if held else set()
    again = [
        n
        for n, draft in enumerate(drafts)
        if any((copy.queue, draft.key) in freed for copy in rounds[n])
    ]
    if not again:
        return rounds
    repeated = yield from engine.publish_topic(topic, [drafts[n] for n in again])
    for n, copies in zip(again, repeated, strict=True):
        new = {copy.queue: copy for copy in copies}
        rounds[n] = [
            new.get(copy.queue, copy) if (copy.queue, drafts[n].key) in freed else copy
            for copy in rounds[n]
        ]
    return rounds
