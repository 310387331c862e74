"""Schedules, seen by an operator."""

from collections.abc import Sequence
from typing import TypeVar

from laneway.client.shared.checks import check_limit
from laneway.errors import InvalidOption, ScheduleMissing
from laneway.model import Published
from laneway.names import check_name
from laneway.schedule import Schedule

from .core import AsyncCore

T = TypeVar("T")


class AsyncSchedules:
    """The schedules of a client's schema, by queue and name. ``queue`` is the client's own if it is
    left out. All but ``list`` raise ScheduleMissing for a name that is not there.

    >>> await queue.schedules.pause("nightly-report")
    """

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

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
        plan = self._core.engine.schedules(queue, None, check_limit(limit), place)
        return await self._core.run(plan)

    async def get(self, name: str, *, queue: str | None = None) -> Schedule:
        """One schedule as it stands.

        >>> (await queue.schedules.get("nightly-report")).next_at
        """
        target = self._target(queue)
        plan = self._core.engine.schedules(target, check_name("schedule", name), 1, None)
        found = await self._core.run(plan)
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
        plan = self._core.engine.run_schedule(target, check_name("schedule", name))
        return _there(await self._core.run(plan), target, name)

    async def remove(
        self, name: str, *, queue: str | None = None, connection: object = None
    ) -> None:
        """Removes the schedule; messages that it published stay."""
        target = self._target(queue)
        plan = self._core.engine.remove_schedule(target, check_name("schedule", name))
        removed = await self._core.run(plan, connection)
        _there(removed or None, target, name)

    async def _pause(self, name: str, queue: str | None, pausing: bool) -> Schedule:
        target = self._target(queue)
        plan = self._core.engine.pause_schedule(target, check_name("schedule", name), pausing)
        return _there(await self._core.run(plan), target, name)

    def _target(self, queue: str | None) -> str:
        return self._core.options.queue if queue is None else check_name("queue", queue)


def _there(found: T | None, queue: str, name: str) -> T:
    if found is None:
        raise ScheduleMissing(
            f"queue {queue!r} has no schedule {name!r}: queue.schedules.list() shows what there is"
        )
    return found
