"""Schedules: schedule, fire_schedules, which any process may run, and what an operator does."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from laneway.client.shared.checks import check_limit, check_queues
from laneway.client.shared.schedule_terms import checked_terms, scheduled_message
from laneway.durations import Duration
from laneway.errors import InvalidOption, ScheduleMissing
from laneway.model import KeyScope, Names, Published
from laneway.names import check_name
from laneway.schedule import CatchUp, FireReport, Schedule
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase

T = TypeVar("T")


@explains_mistakes
class AsyncSchedules:
    """The schedules of a client's schema, by queue and name. ``queue`` is the client's own if it is
    left out. All but ``list`` raise ScheduleMissing for a name that is not there.

    >>> await queue.schedules.pause("nightly-report")
    """

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def list(
        self,
        *,
        queue: str | None = None,
        limit: int = 1000,
        after: Schedule | None = None,
    ) -> Sequence[Schedule]:
        """Up to ``limit`` schedules by queue and name, of all queues if none is named; the next
        page comes ``after`` the last one.

        >>> broken = [s for s in await queue.schedules.list() if s.error]
        """
        if queue is not None:
            queue = check_name("queue", queue)
        if after is not None and not isinstance(after, Schedule):
            raise InvalidOption(f"after must be a Schedule, not {type(after).__name__}")
        place = None if after is None else (after.queue, after.name)
        plan = self._database.engine.schedules.schedules(queue, None, check_limit(limit), place)
        return await self._database.run(plan)

    async def get(self, name: str, *, queue: str | None = None) -> Schedule:
        """One schedule as it stands.

        >>> (await queue.schedules.get("nightly-report")).next_at
        """
        target = self._target(queue)
        plan = self._database.engine.schedules.schedules(
            target, check_name("schedule", name), 1, None
        )
        found = await self._database.run(plan)
        return _there(found[0] if found else None, target, name)

    async def pause(self, name: str, *, queue: str | None = None) -> Schedule:
        """Stops firing until it is resumed."""
        return await self._pause(name, queue, True)

    async def resume(self, name: str, *, queue: str | None = None) -> Schedule:
        """Continues with the next tick from now; ticks during the pause are skipped."""
        return await self._pause(name, queue, False)

    async def run(self, name: str, *, queue: str | None = None) -> Sequence[Published]:
        """Publishes its message now, paused or not; its ticks stay as they are. Returns one
        Published, or one for each subscriber if it goes to a topic.

        >>> await queue.schedules.run("nightly-report")
        """
        target = self._target(queue)
        plan = self._database.engine.schedules.run_schedule(target, check_name("schedule", name))
        return _there(await self._database.run(plan), target, name)

    async def remove(
        self, name: str, *, queue: str | None = None, connection: object = None
    ) -> None:
        """Removes the schedule; messages that it published stay."""
        target = self._target(queue)
        plan = self._database.engine.schedules.remove_schedule(target, check_name("schedule", name))
        removed = await self._database.run(plan, connection)
        _there(removed or None, target, name)

    async def _pause(self, name: str, queue: str | None, pausing: bool) -> Schedule:
        target = self._target(queue)
        plan = self._database.engine.schedules.pause_schedule(
            target, check_name("schedule", name), pausing
        )
        return _there(await self._database.run(plan), target, name)

    def _target(self, queue: str | None) -> str:
        return self._database.options.queue if queue is None else check_name("queue", queue)


def _there(found: T | None, queue: str, name: str) -> T:
    if found is None:
        raise ScheduleMissing(
            f"queue {queue!r} has no schedule {name!r}: queue.schedules.list() shows what there is"
        )
    return found


GRACE = timedelta(minutes=1)
_ZERO = timedelta(0)


@explains_mistakes
class AsyncScheduleVerbs:
    """A part of the client: schedule and fire_schedules."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

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
        key_scope: KeyScope = "kind",
        key_window: Duration | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int = 0,
        expires_in: Duration | None = None,
        max_attempts: int | None = None,
        content_type: str | None = None,
        limits: Names | None = None,
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
        made by ``task.message(…)``, which bring their kind, queue and options. ``limits`` names
        shared limits that each message starts behind.
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
            limits,
            key_scope,
        )
        options = self._database.options
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
        return await self._database.run(self._database.engine.schedules.schedule(terms), connection)

    @property
    def schedules(self) -> AsyncSchedules:
        """What repeats: list, pause, resume, run now, remove."""
        return AsyncSchedules(self._database)

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
        wait = await self._database.run(self._database.engine.schedules.next_firing(names))
        if wait is None or wait > _ZERO:
            return FireReport(look_again=wait)
        return await self._database.run(
            self._database.engine.schedules.fire_due(names, limit), atomic=True
        )
