"""What operators set and ask: the schema, channels, stats, dead letters, settings."""

from collections.abc import Mapping, Sequence
from typing import cast

from laneway.client.shared.checks import check_choice, check_limit, check_number
from laneway.client.shared.pauses import stats_with_pauses
from laneway.client.shared.policy import checked_policies
from laneway.durations import Duration, check_duration
from laneway.inspection import Repair
from laneway.model import ChannelStats, HistoryKept, Policy, QueueStats, Settings
from laneway.names import check_name

from .channel import AsyncChannel
from .core import AsyncCore
from .dead_letters import AsyncDeadLetters

_HISTORY = ("all", "failures", "none")


class AsyncOperateVerbs:
    """A part of the client: what operators set and ask."""

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

    async def repair(self) -> Sequence[Repair]:
        """Upgrades, and puts back what somebody dropped or changed: tables, columns with a default,
        indexes, views and functions. Says of each whether it was put back; what users added
        stays.

        >>> for part in await queue.repair(): ...
        """
        await self.upgrade()
        return await self._core.run(self._core.engine.repair())

    async def install_roles(self, prefix: str | None = None) -> Sequence[str]:
        """Creates the database roles ``<prefix>_producer``, ``_consumer``, ``_viewer`` and
        ``_admin``, or grants their rights again, and returns their names; the prefix is the
        schema's name by default. Needs the right to create roles. Raises InvalidOption on SQLite.

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
        """Replaces the whole policies of many channels in one call.

        >>> await queue.set_policies({"tenant-42": Policy(concurrency=2), "tenant-43": Policy()})
        """
        target = self._core.options.queue if queue is None else check_name("queue", queue)
        checked = checked_policies(policies)
        if checked:
            await self._core.run(self._core.engine.set_policies(target, checked))

    @property
    def dead_letters(self) -> AsyncDeadLetters:
        """Messages that were given up: list, redrive, discard."""
        return AsyncDeadLetters(self._core)

    async def stats(self) -> list[QueueStats]:
        """How many messages wait, are leased and so on, by queue. Counts no messages.

        >>> for stats in await queue.stats(): ...
        """
        return await self._core.run(stats_with_pauses(self._core.engine))

    async def channel_stats(
        self, *, queue: str | None = None, limit: int = 1000
    ) -> list[ChannelStats]:
        """The same by channel, the fullest first; of all queues if none is named.

        >>> fullest = await queue.channel_stats(limit=10)
        """
        if queue is not None:
            queue = check_name("queue", queue)
        plan = self._core.engine.channel_stats(queue, None, check_limit(limit))
        return await self._core.run(plan)

    async def settings(self) -> Settings:
        """The settings of the whole schema."""
        return await self._core.run(self._core.engine.settings())

    async def configure(
        self,
        *,
        history: HistoryKept | None = None,
        history_days: int | None = None,
        backoff_initial: Duration | None = None,
        backoff_max: Duration | None = None,
        audit_days: int | None = None,
    ) -> Settings:
        """Changes the given settings for all clients of the schema, and returns the new settings.

        >>> await queue.configure(history="failures", history_days=7)
        """
        if history is not None:
            history = cast(HistoryKept, check_choice("history", history, _HISTORY))
        if history_days is not None:
            history_days = check_number("history_days", history_days, 1, 36_500)
        if backoff_initial is not None:
            backoff_initial = check_duration("backoff_initial", backoff_initial)
        if backoff_max is not None:
            backoff_max = check_duration("backoff_max", backoff_max)
        if audit_days is not None:
            audit_days = check_number("audit_days", audit_days, 1, 36_500)
        plan = self._core.engine.configure(
            history, history_days, backoff_initial, backoff_max, audit_days
        )
        return await self._core.run(plan)
