"""schedule, and fire_schedules, which any process may run."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from laneway.client.shared.checks import check_limit, check_queues
from laneway.client.shared.schedule_terms import checked_terms, scheduled_message
from laneway.durations import Duration
from laneway.schedule import CatchUp, FireReport, Schedule

from .core import AsyncCore
from .schedules import AsyncSchedules

GRACE = timedelta(minutes=1)
_ZERO = timedelta(0)


class AsyncScheduleVerbs:
    """A part of the client: schedule and fire_schedules."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    async def schedule(
        self,
        name: str,
        payload: Any = None,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        zone: str | None = None,
        start: datetime | None = None,
        catch_up: CatchUp = "once",
        grace: Duration = GRACE,
        topic: str | None = None,
        channel: str = "default",
        queue: str | None = None,
        kind: str = "",
        key: str | None = None,
        key_window: Duration | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int = 0,
        expires_in: Duration | None = None,
        max_attempts: int | None = None,
        content_type: str | None = None,
        connection: object = None,
    ) -> Schedule:
        """Creates or updates a repeating message; safe to call at every start of every process.

        ``cron`` has five fields and ticks in ``zone`` (UTC by default); ``every`` counts from
        ``start``, or from now. An unchanged schedule stays as it is; new times count from
        now, and a paused schedule stays paused. After a downtime ``catch_up`` fires the last missed
        tick ("once"), every one ("all"), or only one not older than ``grace`` ("skip"). With a
        ``topic`` each tick goes to its subscribers. With a ``key``, a tick publishes nothing while
        the message of an earlier one lives. The message's headers say which schedule ("laneway-
        schedule") and tick ("laneway-tick") it is. A ``payload`` may be a task, or a call of one
        made by ``task.message(…)``, which bring their kind, queue and options.
        Raises InvalidSchedule for a bad expression or an unknown zone.

        >>> await queue.schedule("nightly-report", {"pages": 3}, cron="0 3 * * *",
        ...     zone="Europe/Zurich", kind="report")
        """
        message = scheduled_message(
            payload,
            channel,
            queue,
            kind,
            key,
            key_window,
            headers,
            priority,
            expires_in,
            max_attempts,
            content_type,
        )
        options = self._core.options
        terms = checked_terms(
            name,
            message,
            options.queue,
            options.max_payload,
            cron=cron,
            every=every,
            zone=zone,
            start=start,
            catch_up=catch_up,
            grace=grace,
            topic=topic,
        )
        return await self._core.run(self._core.engine.schedule(terms), connection)

    @property
    def schedules(self) -> AsyncSchedules:
        """What repeats: list, pause, resume, run now, remove."""
        return AsyncSchedules(self._core)

    async def fire_schedules(
        self, *, queues: Iterable[str] | None = None, limit: int = 100
    ) -> FireReport:
        """Publishes what is due, each tick once, however many processes call this at the same time.

        Of all queues by default. Up to ``limit`` schedules in one transaction; ``look_again`` of
        the result says when to call it again, zero if there is more. Workers call it by themselves.

        >>> report = await queue.fire_schedules()
        """
        names = None if queues is None else check_queues(queues)
        limit = check_limit(limit)
        wait = await self._core.run(self._core.engine.next_firing(names))
        if wait is None or wait > _ZERO:
            return FireReport(look_again=wait)
        return await self._core.run(self._core.engine.fire_due(names, limit), atomic=True)
