"""Taskiq's schedules as Laneway's own: kept in the database, fired by every worker, each tick once.

No scheduler process is needed.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from taskiq import ScheduledTask, ScheduleSource, TaskiqMessage

from laneway.errors import ScheduleMissing

from .broker import LanewayBroker, connection_in_use, note_sent, publish_options

_FAR = timedelta(days=3650)
# What a publish takes and a schedule does not.
_NOT_REPEATED = ("delay",)


class LanewayScheduleSource(ScheduleSource):  # type: ignore[misc]
    """Where ``kicker().schedule_by_cron(source, …)`` and its like put their schedules.

    The result of a repeated task is that of its last run.

    >>> source = LanewayScheduleSource(broker)
    >>> await report.kicker().with_schedule_id("nightly").schedule_by_cron(source, "0 3 * * *")
    """

    def __init__(self, broker: LanewayBroker) -> None:
        self._broker = broker

    async def get_schedules(self) -> list[ScheduledTask]:
        """None for taskiq's scheduler to send: the workers do. ``broker.queue.schedules`` lists
        them."""
        return []

    async def add_schedule(self, schedule: ScheduledTask) -> None:
        """Replaces one with the same id."""
        task_id = schedule.task_id or schedule.schedule_id
        message = TaskiqMessage(
            task_id=task_id,
            task_name=schedule.task_name,
            labels={**schedule.labels, "schedule_id": schedule.schedule_id},
            args=schedule.args,
            kwargs=schedule.kwargs,
        )
        options: dict[str, Any] = {
            **publish_options(schedule.labels),
            "kind": schedule.task_name,
            "headers": {"taskiq-task-id": task_id},
            "connection": connection_in_use(),
        }
        payload = self._broker.formatter.dumps(message).message
        if schedule.time is not None:
            options.update(at=schedule.time, key=schedule.schedule_id, key_scope="queue")
            options.pop("delay", None)
            await self._broker.queue.publish(payload, **options)
        else:
            for name in _NOT_REPEATED:
                options.pop(name, None)
            options.update(cron=schedule.cron, every=schedule.interval, zone=_zone(schedule))
            await self._broker.queue.schedule(schedule.schedule_id, payload, **options)
        note_sent(task_id)

    async def delete_schedule(self, schedule_id: str) -> None:
        """Also of one call at a time that has not come."""
        queue = self._broker.queue
        with suppress(ScheduleMissing):
            await queue.schedules.remove(schedule_id)
        # The key leads to the message, if there is one; else to this one, which nobody has seen.
        held = await queue.publish(b"", key=schedule_id, key_scope="queue", delay=_FAR)
        if held.id is not None:
            await queue.cancel([held.id])


def _zone(schedule: ScheduledTask) -> str | None:
    zone: str | timedelta | None = schedule.cron_offset
    if isinstance(zone, timedelta):
        raise ValueError(
            f"the schedule {schedule.schedule_id!r} has an offset of {zone}: give "
            'the name of a time zone instead, such as "Europe/Zurich"'
        )
    return zone
