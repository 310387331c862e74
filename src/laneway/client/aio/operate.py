"""What operators set and ask: the schema, channels, stats, dead letters, settings."""

from collections.abc import Mapping, Sequence
from typing import Literal, cast

from laneway.client.shared.checks import (
    check_choice,
    check_limit,
    check_number,
    checked_change,
    checked_fairness,
    checked_pause,
    checked_policies,
    checked_shared_limit,
)
from laneway.client.shared.operate import stats_with_pauses
from laneway.durations import Duration, check_duration
from laneway.inspection import Repair
from laneway.limits import Adapt, Breaker, LimitChange
from laneway.model import (
    KEEP,
    ChannelStats,
    HistoryKept,
    Keep,
    Listing,
    Policy,
    QueueStats,
    Settings,
)
from laneway.names import check_name
from laneway.operations import Fairness
from laneway.shared_limits import SharedLimit, check_limit_name
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase
from .dead_letters import AsyncDeadLetters

# One channel, seen by an operator.


@explains_mistakes
class AsyncChannel:
    """A fair lane inside a queue, usually one per tenant.

    >>> channel = queue.channel("tenant-42")
    """

    def __init__(self, database: AsyncDatabase, queue: str, name: str) -> None:
        self._database = database
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
        return await self._database.run(
            self._database.engine.channels.limit(self.queue, self.name, change)
        )

    async def set_policy(self, policy: Policy) -> None:
        """Replaces the whole policy: what it leaves out is unlimited, and the weight 1.

        >>> await queue.channel("tenant-42").set_policy(Policy(concurrency=2))
        """
        policies = checked_policies({self.name: policy})
        await self._database.run(self._database.engine.channels.set_policies(self.queue, policies))

    async def unlimited(self) -> None:
        """Removes all limits; a paused channel stays paused."""
        await self.set_policy(Policy())

    async def pause(self, duration: Duration | None = None) -> None:
        """Stops claims from this channel, for ``duration`` or until it is resumed; publishing still
        works.

        >>> await queue.channel("tenant-42").pause(duration=timedelta(minutes=30))
        """
        length = checked_pause(duration)
        await self._database.run(
            self._database.engine.channels.pause(self.queue, [self.name], True, length)
        )

    async def throttle(self, retry_after: Duration) -> None:
        """Stops claims from this channel for ``retry_after``, because whoever does its work asked
        for it; a pause that lasts longer stays as it is. Handlers of a Worker raise Throttled.

        >>> await queue.channel("tenant-42").throttle(timedelta(seconds=30))
        """
        length = check_duration("retry_after", retry_after)
        await self._database.run(
            self._database.engine.channels.throttle(self.queue, self.name, length)
        )

    async def resume(self) -> None:
        """Allows claims again."""
        await self._database.run(
            self._database.engine.channels.pause(self.queue, [self.name], False)
        )

    async def remove(self) -> None:
        """Refuses new messages; once the last one has ended, the channel and its policy are deleted
        and the name is free again."""
        await self._database.run(self._database.engine.channels.remove(self.queue, [self.name]))

    async def policy(self) -> Policy:
        """The current policy; a channel that was never limited has the default one."""
        return await self._database.run(
            self._database.engine.channels.policy(self.queue, self.name)
        )

    async def stats(self) -> ChannelStats:
        """How many messages wait, are leased and so on."""
        plan = self._database.engine.inspection.channel_stats(self.queue, self.name, 1)
        found = await self._database.run(plan)
        return found[0] if found else ChannelStats(self.queue, self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue}/{self.name}>"


_HISTORY = ("all", "failures", "none")


# Limits that channels share.


@explains_mistakes
class AsyncNamedLimit:
    """One shared limit.

    >>> stripe = queue.limits["stripe"]
    """

    def __init__(self, database: AsyncDatabase, name: str) -> None:
        self._database = database
        self.name = name

    async def set(
        self,
        *,
        concurrency: int | Keep | None = KEEP,
        rate: float | Keep | None = KEEP,
        burst: int | Keep | None = KEEP,
        adapt: Adapt | Keep | None = KEEP,
        breaker: Breaker | Keep | None = KEEP,
    ) -> SharedLimit:
        """Changes what is named and nothing else, and returns what holds now.

        None removes it. ``rate`` is in starts per second; a new rate allows a ``burst`` of one
        second's worth unless one is named. Holds from the next claim on; a lower concurrency is met
        as leases end. With ``adapt`` the limit finds its own concurrency, beginning with
        ``concurrency``; setting a ``breaker`` closes it.

        >>> await queue.limits["stripe"].set(concurrency=20, rate=100, burst=20)
        >>> await queue.limits["stripe"].set(adapt=Adapt(min=2, max=50), breaker=Breaker())
        """
        change = checked_shared_limit(concurrency, rate, burst, adapt, breaker)
        return await self._database.run(
            self._database.engine.limits.set_shared_limit(self.name, change)
        )

    async def rest(self, retry_after: Duration) -> None:
        """Starts nothing behind it for ``retry_after``; a rest that lasts longer stays as it is.
        Handlers of a Worker raise Throttled with the limit's name.

        >>> await queue.limits["stripe"].rest(timedelta(seconds=30))
        """
        length = check_duration("retry_after", retry_after)
        await self._database.run(self._database.engine.limits.rest_shared_limit(self.name, length))

    async def remove(self) -> bool:
        """Removes it, and says whether it was there. Messages that name it are not held back any
        more."""
        return await self._database.run(self._database.engine.limits.remove_shared_limit(self.name))

    async def get(self) -> SharedLimit:
        """What it is set to, and what runs and waits behind it; without limits if nobody set it.

        >>> (await queue.limits["stripe"].get()).running
        """
        found = await self._database.run(self._database.engine.limits.shared_limits())
        return next((one for one in found if one.name == self.name), SharedLimit(self.name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


@explains_mistakes
class AsyncLimits:
    """The shared limits of a client's schema, by name.

    >>> await queue.limits["stripe"].set(concurrency=20)
    """

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    def __getitem__(self, name: str) -> AsyncNamedLimit:
        return AsyncNamedLimit(self._database, check_limit_name(name))

    async def list(self) -> Sequence[SharedLimit]:
        """All of them by name, also those that messages name and nobody has set.

        >>> for limit in await queue.limits.list(): print(limit.name, limit.running)
        """
        return await self._database.run(self._database.engine.limits.shared_limits())


@explains_mistakes
class AsyncOperateVerbs:
    """A part of the client: what operators set and ask."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def install(self) -> None:
        """Creates the schema, or brings it up to date; safe to repeat, and from many processes.

        >>> await queue.install()
        """
        await self._database.run(self._database.engine.schema.install(), atomic=True)

    async def upgrade(self) -> None:
        """Applies the migrations that are missing; raises SchemaMissing if nothing is installed.

        >>> await queue.upgrade()
        """
        await self._database.run(self._database.engine.schema.upgrade(), atomic=True)

    async def repair(self) -> Sequence[Repair]:
        """Upgrades, and puts back what somebody dropped or changed: tables, columns with a default,
        indexes, views and functions. Says of each whether it was put back; what users added
        stays.

        >>> for part in await queue.repair(): ...
        """
        await self.upgrade()
        return await self._database.run(self._database.engine.schema.repair())

    async def install_roles(self, prefix: str | None = None) -> Sequence[str]:
        """Creates the database roles ``<prefix>_producer``, ``_consumer``, ``_viewer`` and
        ``_admin``, or grants their rights again, and returns their names; the prefix is the
        schema's name by default. Needs the right to create roles. Raises InvalidOption on SQLite.

        >>> await queue.install_roles()
        """
        return await self._database.run(
            self._database.engine.schema.install_roles(prefix), atomic=True
        )

    async def uninstall(self) -> None:
        """Removes the schema with everything in it; raises SchemaMissing if nothing is there.

        >>> await queue.uninstall()
        """
        await self._database.run(self._database.engine.schema.uninstall(), atomic=True)

    async def schema_version(self) -> int:
        """The number of the last migration; raises SchemaMissing if nothing is installed."""
        return await self._database.run(self._database.engine.schema.schema_version())

    def channel(self, name: str, *, queue: str | None = None) -> AsyncChannel:
        """One channel, to limit, pause, remove or look at; it need not exist.

        >>> await queue.channel("tenant-42").limit(concurrency=2, rate=10, burst=20)
        """
        target = self._database.options.queue if queue is None else check_name("queue", queue)
        return AsyncChannel(self._database, target, check_name("channel", name))

    @property
    def limits(self) -> AsyncLimits:
        """Limits that messages of any channels and queues share, by name.

        >>> await queue.limits["stripe"].set(concurrency=20, rate=100)
        """
        return AsyncLimits(self._database)

    async def set_policies(
        self, policies: Mapping[str, Policy], *, queue: str | None = None
    ) -> None:
        """Replaces the whole policies of many channels in one call.

        >>> await queue.set_policies({"tenant-42": Policy(concurrency=2), "tenant-43": Policy()})
        """
        target = self._database.options.queue if queue is None else check_name("queue", queue)
        checked = checked_policies(policies)
        if checked:
            await self._database.run(self._database.engine.channels.set_policies(target, checked))

    @property
    def dead_letters(self) -> AsyncDeadLetters:
        """Messages that were given up: list, redrive, discard."""
        return AsyncDeadLetters(self._database)

    async def stats(self) -> list[QueueStats]:
        """How many messages wait, are leased and so on, by queue. Counts no messages.

        >>> for stats in await queue.stats(): ...
        """
        return Listing(await self._database.run(stats_with_pauses(self._database.engine)))

    async def channel_stats(
        self, *, queue: str | None = None, limit: int = 1000
    ) -> list[ChannelStats]:
        """The same by channel, the fullest first; of all queues if none is named.

        >>> fullest = await queue.channel_stats(limit=10)
        """
        if queue is not None:
            queue = check_name("queue", queue)
        plan = self._database.engine.inspection.channel_stats(queue, None, check_limit(limit))
        return Listing(await self._database.run(plan))

    async def settings(self) -> Settings:
        """The settings of the whole schema."""
        return await self._database.run(self._database.engine.maintenance.settings())

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
        plan = self._database.engine.maintenance.configure(
            history, history_days, backoff_initial, backoff_max, audit_days
        )
        return await self._database.run(plan)

    async def set_fairness(
        self,
        by: Literal["starts", "time"],
        *,
        turn: Duration | None = None,
        queue: str | None = None,
    ) -> Fairness:
        """By what the queue's channels take turns: by ``starts``, as they do unless told
        otherwise, or by the ``time`` that their handlers take. Then channels of the same weight
        get the same worker time, however long their messages run. ``turn``: by how much worker
        time one may get ahead of the others, one second by default.

        >>> await queue.set_fairness("time")
        """
        name = self._database.options.queue if queue is None else check_name("queue", queue)
        plan = self._database.engine.queues.set_fairness(name, checked_fairness(by, turn))
        return await self._database.run(plan)

    async def fairness(self, *, queue: str | None = None) -> Fairness:
        """By what the queue's channels take turns.

        >>> (await queue.fairness()).by
        """
        name = self._database.options.queue if queue is None else check_name("queue", queue)
        return await self._database.run(self._database.engine.queues.fairness(name))
