"""One channel, seen by an operator."""

from penstock.model import ChannelNumbers, Policy

from .async_core import AsyncCore
from .policies import checked_policies


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
        concurrency: int | None = None,
        rate: float | None = None,
        burst: int | None = None,
        backlog: int | None = None,
        weight: float = 1.0,
    ) -> None:
        """States the whole policy: what is left out is unlimited, and the weight 1.

        ``rate`` is in starts per second; ``burst`` is by default one second's worth. Holds from the
        next claim on; a lower concurrency is met as leases end.

        >>> await queue.channel("tenant-42").limit(concurrency=2, rate=10, burst=20)
        """
        policy = Policy(concurrency, rate, burst, backlog, weight)
        await self._set(policy)

    async def unlimited(self) -> None:
        """Takes all limits away; a paused channel stays paused."""
        await self._set(Policy())

    async def pause(self) -> None:
        """No claim from this channel until it is resumed; publishing goes on."""
        await self._core.run(self._core.engine.pause(self.queue, [self.name], True))

    async def resume(self) -> None:
        """Lets claims have it again."""
        await self._core.run(self._core.engine.pause(self.queue, [self.name], False))

    async def remove(self) -> None:
        """Takes no new messages; once the last one has ended, the channel and its policy are gone
        and the name is free again."""
        await self._core.run(self._core.engine.remove(self.queue, [self.name]))

    async def policy(self) -> Policy:
        """What holds now; a channel that nobody has limited has the default policy."""
        return await self._core.run(self._core.engine.policy(self.queue, self.name))

    async def numbers(self) -> ChannelNumbers:
        """How many messages wait, are leased and so on."""
        plan = self._core.engine.channel_numbers(self.queue, self.name, 1)
        found = await self._core.run(plan)
        return found[0] if found else ChannelNumbers(self.queue, self.name)

    async def _set(self, policy: Policy) -> None:
        policies = checked_policies({self.name: policy})
        await self._core.run(self._core.engine.set_policies(self.queue, policies))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue}/{self.name}>"
