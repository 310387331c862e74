"""What operators set and ask: the schema, channels, numbers, dead letters, settings."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import cast

from penstock.model import ChannelNumbers, HistoryKept, Policy, QueueNumbers, Settings
from penstock.names import check_name

from .async_channel import AsyncChannel
from .async_core import AsyncCore
from .async_dead_letters import AsyncDeadLetters
from .checks import check_choice, check_length, check_limit, check_number
from .policies import checked_policies

_HISTORY = ("all", "failures", "none")


class AsyncOperating:
    """Part of the client."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    async def install(self) -> None:
        """Creates the schema, or brings it up to date; safe to repeat, and from many processes.

        >>> await queue.install()
        """
        await self._core.run(self._core.engine.install(), atomic=True)

    async def upgrade(self) -> None:
        """Applies the migrations that are missing; raises SchemaMissing if nothing is installed.

        >>> await queue.upgrade()
        """
        await self._core.run(self._core.engine.upgrade(), atomic=True)

    async def install_roles(self, prefix: str | None = None) -> Sequence[str]:
        """Creates the database roles ``<prefix>_producer``, ``_consumer``, ``_viewer`` and
        ``_admin``, or states their rights anew, and answers their names; the prefix is the schema's
        name by default. Needs the right to create roles. Raises InvalidOption on SQLite.

        >>> await queue.install_roles()
        """
        return await self._core.run(self._core.engine.install_roles(prefix), atomic=True)

    async def uninstall(self) -> None:
        """Removes the schema with everything in it; raises SchemaMissing if nothing is there.

        >>> await queue.uninstall()
        """
        await self._core.run(self._core.engine.uninstall(), atomic=True)

    async def schema_version(self) -> int:
        """The number of the last migration; raises SchemaMissing if nothing is installed."""
        return await self._core.run(self._core.engine.schema_version())

    def channel(self, name: str, *, queue: str | None = None) -> AsyncChannel:
        """One channel, to limit, pause, remove or look at; it need not exist.

        >>> await queue.channel("tenant-42").limit(concurrency=2, rate=10, burst=20)
        """
        target = self._core.options.queue if queue is None else check_name("queue", queue)
        return AsyncChannel(self._core, target, check_name("channel", name))

    async def set_policies(
        self, policies: Mapping[str, Policy], *, queue: str | None = None
    ) -> None:
        """States the whole policies of many channels in one call.

        >>> await queue.set_policies({"tenant-42": Policy(concurrency=2), "tenant-43": Policy()})
        """
        target = self._core.options.queue if queue is None else check_name("queue", queue)
        checked = checked_policies(policies)
        if checked:
            await self._core.run(self._core.engine.set_policies(target, checked))

    @property
    def dead_letters(self) -> AsyncDeadLetters:
        """What was given up: list, redrive, discard."""
        return AsyncDeadLetters(self._core)

    async def numbers(self) -> list[QueueNumbers]:
        """How many messages wait, are leased and so on, by queue. Counts no messages.

        >>> for numbers in await queue.numbers(): ...
        """
        return await self._core.run(self._core.engine.queue_numbers())

    async def channel_numbers(
        self, *, queue: str | None = None, limit: int = 1000
    ) -> list[ChannelNumbers]:
        """The same by channel, the fullest first; of all queues if none is named.

        >>> fullest = await queue.channel_numbers(limit=10)
        """
        if queue is not None:
            queue = check_name("queue", queue)
        plan = self._core.engine.channel_numbers(queue, None, check_limit(limit))
        return await self._core.run(plan)

    async def settings(self) -> Settings:
        """What holds for the whole schema."""
        return await self._core.run(self._core.engine.settings())

    async def configure(
        self,
        *,
        history: HistoryKept | None = None,
        history_days: int | None = None,
        backoff_first: timedelta | None = None,
        backoff_most: timedelta | None = None,
    ) -> Settings:
        """Changes what is given, for all clients of the schema, and answers what holds now.

        >>> await queue.configure(history="failures", history_days=7)
        """
        if history is not None:
            history = cast(HistoryKept, check_choice("history", history, _HISTORY))
        if history_days is not None:
            history_days = check_number("history_days", history_days, 1, 36_500)
        if backoff_first is not None:
            backoff_first = check_length("backoff_first", backoff_first)
        if backoff_most is not None:
            backoff_most = check_length("backoff_most", backoff_most)
        plan = self._core.engine.configure(history, history_days, backoff_first, backoff_most)
        return await self._core.run(plan)
