"""Publishing what schedules fire: the same two verbs on every engine."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from penstock.firing import Firing, draft_of
from penstock.model import Draft, Published
from penstock.plan import Plan
from penstock.schedule import Schedule
from penstock.topic import Copy


class Publisher(Protocol):
    """As much of an engine as this needs."""

    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]: ...

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[Copy]]]: ...


def publish_now(engine: Publisher, schedule: Schedule, now: datetime) -> Plan[list[Published]]:
    """One message outside of the schedule's own ticks."""
    draft = draft_of(schedule, now)
    if schedule.topic is None:
        return (yield from engine.publish([draft]))
    (copies,) = yield from engine.publish_topic(schedule.topic, [draft])
    return [Published(copy.id, copy.status) for copy in copies]


def publish_firings(engine: Publisher, firings: Sequence[Firing]) -> Plan[list[list[bool]]]:
    """For each tick whether it was taken, by its channel or by any of a topic's subscribers."""
    plain = [draft for each in firings if each.schedule.topic is None for draft in each.drafts]
    rest = iter((yield from engine.publish(plain)))
    taken = []
    for each in firings:
        if each.schedule.topic is None:
            taken.append([not next(rest).refused for _ in each.ticks])
        else:
            rounds = yield from engine.publish_topic(each.schedule.topic, each.drafts)
            taken.append([not part or not all(c.refused for c in part) for part in rounds])
    return taken
