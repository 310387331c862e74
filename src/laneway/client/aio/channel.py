"""One channel, seen by an operator."""

from laneway.client.shared.checks import checked_pause
from laneway.client.shared.policy import checked_change, checked_policies
from laneway.durations import Duration, check_duration
from laneway.limits import LimitChange
from laneway.model import KEEP, ChannelStats, Keep, Policy

from .core import AsyncCore


class AsyncChannel:
    """A fair lane inside a queue, usually one per tenant.

    >>> channel = queue.channel("tenant-42")
    """

    def __init__(self, core: AsyncCore, queue: str, name: str) -> None:
        self._core = core
        self.queue = queue
        self.name = name

    async def limit(
        self,
        *,
        concurrency: int | Keep | None = KEEP,
        rate: float | Keep | None = KEEP,
        burst: int | Keep | None = KEEP,
        backlog: int | Keep | None = KEEP,
        weight: float | Keep = KEEP,
    ) -> Policy:
        """Changes the limits that are named and no others, and returns the new policy.

        None removes a limit. ``rate`` is in starts per second; a new rate allows a ``burst`` of one
        second's worth unless one is named. Holds from the next claim on; a lower concurrency is met
        as leases end. What several callers change at the same time all holds.

        >>> await queue.channel("tenant-42").limit(concurrency=2, rate=10, burst=20)
        >>> await queue.channel("tenant-42").limit(concurrency=None)
        """
        change = checked_change(LimitChange(concurrency, rate, burst, backlog, weight))
        return await self._core.run(self._core.engine.limit(self.queue, self.name, change))

    async def set_policy(self, policy: Policy) -> None:
        """Replaces the whole policy: what it leaves out is unlimited, and the weight 1.

        >>> await queue.channel("tenant-42").set_policy(Policy(concurrency=2))
        """
        policies = checked_policies({self.name: policy})
        await self._core.run(self._core.engine.set_policies(self.queue, policies))

    async def unlimited(self) -> None:
        """Removes all limits; a paused channel stays paused."""
        await self.set_policy(Policy())

    async def pause(self, duration: Duration | None = None) -> None:
        """Stops claims from this channel, for ``duration`` or until it is resumed; publishing still
        works.

        >>> await queue.channel("tenant-42").pause(duration=timedelta(minutes=30))
        """
        length = checked_pause(duration)
        await self._core.run(self._core.engine.pause(self.queue, [self.name], True, length))

    async def throttle(self, retry_after: Duration) -> None:
        """Stops claims from this channel for ``retry_after``, because whoever does its work asked
        for it; a pause that lasts longer stays as it is. Handlers of a Worker raise Throttled.

        >>> await queue.channel("tenant-42").throttle(timedelta(seconds=30))
        """
        length = check_duration("retry_after", retry_after)
        await self._core.run(self._core.engine.throttle(self.queue, self.name, length))

    async def resume(self) -> None:
        """Allows claims again."""
        await self._core.run(self._core.engine.pause(self.queue, [self.name], False))

    async def remove(self) -> None:
        """Refuses new messages; once the last one has ended, the channel and its policy are deleted
        and the name is free again."""
        await self._core.run(self._core.engine.remove(self.queue, [self.name]))

    async def policy(self) -> Policy:
        """The current policy; a channel that was never limited has the default one."""
        return await self._core.run(self._core.engine.policy(self.queue, self.name))

    async def stats(self) -> ChannelStats:
        """How many messages wait, are leased and so on."""
        plan = self._core.engine.channel_stats(self.queue, self.name, 1)
        found = await self._core.run(plan)
        return found[0] if found else ChannelStats(self.queue, self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue}/{self.name}>"
