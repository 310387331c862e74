"""Schedules and topics, for an operator."""

from collections.abc import Sequence
from dataclasses import replace

from laneway.client.sync.queue import Queue
from laneway.errors import ScheduleMissing
from laneway.model import Published
from laneway.schedule import Schedule
from laneway.topic import Subscription

from .base import Base
from .verbs import Right, verb


class ScheduleActions(Base):
    """A schedule is in the scope if it publishes to a channel of it, and to no topic."""

    @verb(Right.VIEW, "filtered")
    def schedules(
        self, *, queue: str | None = None, limit: int = 100, after: Schedule | None = None
    ) -> list[Schedule]:
        """Schedules by queue and name, without payloads; the next page comes ``after`` the last
        one."""

        def page(last: Schedule | None, most: int) -> Sequence[Schedule]:
            return self._queue.schedules.list(queue=queue, limit=most, after=last or after)

        found = self._seen(page, self._channel_of, limit)
        return [replace(schedule, payload=b"") for schedule in found]

    @verb(Right.VIEW, "filtered")
    def schedule(self, name: str, *, queue: str | None = None) -> Schedule:
        """One schedule; raises ScheduleMissing if there is none. Its payload is left out unless the
        principal may view payloads."""
        return self._readable(self._schedule(name, queue))

    @verb(Right.SCHEDULES, "filtered", acts=True)
    def pause_schedule(self, name: str, *, queue: str | None = None) -> Schedule:
        """Stops firing until it is resumed."""
        self._schedule(name, queue)
        acting = self._on("pause_schedule", name, queue)
        return self._readable(acting.schedules.pause(name, queue=queue))

    @verb(Right.SCHEDULES, "filtered", acts=True)
    def resume_schedule(self, name: str, *, queue: str | None = None) -> Schedule:
        """Continues with the next tick from now."""
        self._schedule(name, queue)
        acting = self._on("resume_schedule", name, queue)
        return self._readable(acting.schedules.resume(name, queue=queue))

    @verb(Right.SCHEDULES, "filtered", acts=True)
    def run_schedule(self, name: str, *, queue: str | None = None) -> Sequence[Published]:
        """Publishes its message now; its ticks stay as they are."""
        self._schedule(name, queue)
        return self._on("run_schedule", name, queue).schedules.run(name, queue=queue)

    @verb(Right.SCHEDULES, "filtered", acts=True)
    def remove_schedule(self, name: str, *, queue: str | None = None) -> None:
        """Removes the schedule; messages that it published stay."""
        self._schedule(name, queue)
        self._on("remove_schedule", name, queue).schedules.remove(name, queue=queue)

    def _schedule(self, name: str, queue: str | None) -> Schedule:
        found = self._queue.schedules.get(name, queue=queue)
        if not self.principal.sees(self._channel_of(found)):
            raise ScheduleMissing(f"queue {found.queue!r} has no schedule {name!r} that you see")
        return found

    def _readable(self, schedule: Schedule) -> Schedule:
        shown = Right.VIEW_PAYLOADS in self.principal.rights
        return schedule if shown else replace(schedule, payload=b"")

    def _on(self, action: str, name: str, queue: str | None) -> Queue:
        target = {"queue": self._target(queue), "schedule": name}
        return self._acting(action, target, lambda found: 1 if found else 0)

    @staticmethod
    def _channel_of(schedule: Schedule) -> str:
        # No prefix is empty, so what goes to a topic, and from there anywhere, is in no scope.
        return schedule.channel if schedule.topic is None else ""


class TopicActions(Base):
    """A subscription copies what all channels publish, so it is in no scope."""

    @verb(Right.VIEW, "refused")
    def subscriptions(self) -> Sequence[Subscription]:
        """Which queues get copies of which topics."""
        return self._queue.subscriptions()

    @verb(Right.TOPICS, "refused", acts=True)
    def subscribe(
        self,
        topic: str,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
    ) -> None:
        """Copies what is published to a topic from now on into a queue."""
        target = {"topic": topic, "queue": self._target(queue), "channel": channel, "kind": kind}
        acting = self._acting("subscribe", target)
        acting.topic(topic).subscribe(queue=queue, channel=channel, kind=kind)

    @verb(Right.TOPICS, "refused", acts=True)
    def unsubscribe(self, topic: str, *, queue: str | None = None) -> bool:
        """Stops copying a topic into a queue; existing copies stay."""
        target = {"topic": topic, "queue": self._target(queue)}
        return self._acting("unsubscribe", target, int).topic(topic).unsubscribe(queue=queue)
