"""What operators look at: messages wherever they are, channels, what ended, totals, the clock."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, cast, get_args

from laneway.client.shared.checks import (
    check_choice,
    check_ids,
    check_limit,
    check_number,
    check_time,
)
from laneway.client.shared.operate import (
    HOUR,
    MINUTE,
    channels_with_pauses,
    check_flag,
    check_prefix,
    checked_minutes,
)
from laneway.client.shared.settle_items import with_progress
from laneway.durations import Duration
from laneway.event import StoredResult
from laneway.inspection import (
    ChannelFilter,
    ChannelPage,
    Finding,
    HistoryPage,
    MessageFilter,
    MessageInfo,
    MessagePage,
    MessageState,
    Totals,
)
from laneway.model import HistoryEntry, Listing
from laneway.names import check_kind, check_name
from laneway.operations import Minute, WorkerInfo
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase

_LAST_ID = 2**63 - 1


@explains_mistakes
class AsyncInspectVerbs:
    """A part of the client: what operators look at."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def messages(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        state: MessageState | None = None,
        limit: int = 100,
        after: int = 0,
    ) -> MessagePage:
        """Up to ``limit`` messages by id, of all queues if none is named; the next page comes
        ``after=page.next``, which is None at the end. Dead letters only if their state is asked
        for. A call looks at 10,000 messages at most, so where few match, a page that is not the
        last one may hold fewer than ``limit``, or none.

        >>> page = await queue.messages(queue="emails", state="leased")
        """
        if state is not None:
            state = cast(MessageState, check_choice("the state", state, get_args(MessageState)))
        wanted = MessageFilter(
            None if queue is None else check_name("queue", queue),
            None if channel is None else check_name("channel", channel),
            None if kind is None else check_kind(kind),
            state,
        )
        after = check_number("after", after, 0, _LAST_ID)
        page = await self._database.run(
            self._database.engine.inspection.messages(wanted, check_limit(limit), after)
        )
        leased = [info.id for info in page if info.state == "leased"]
        if leased:
            said = await self._database.run(self._database.engine.leases.progress(leased))
            found = dict(zip(leased, said, strict=True))
            page[:] = [with_progress(info, found.get(info.id)) for info in page]
        return page

    async def message(self, message_id: int) -> MessageInfo | None:
        """Where a message is now: waiting, scheduled, leased or dead. None once it has ended;
        then its history says how.

        >>> info = await queue.message(9182)
        """
        (wanted,) = check_ids([message_id])
        info = await self._database.run(self._database.engine.inspection.message(wanted))
        if info is None or info.state != "leased":
            return info
        (progress,) = await self._database.run(self._database.engine.leases.progress([wanted]))
        return with_progress(info, progress)

    async def payload(self, message_id: int) -> bytes | None:
        """The payload of a message that has not ended, dead letters included."""
        (wanted,) = check_ids([message_id])
        return await self._database.run(self._database.engine.inspection.payload(wanted))

    async def saved_state(self, message_id: int) -> bytes | None:
        """What its handler saved (``Defer(state=…)``) with a message that has not ended; None if
        nothing is saved."""
        (wanted,) = check_ids([message_id])
        return await self._database.run(self._database.engine.inspection.saved_state(wanted))

    async def stored_result(self, message_id: int) -> StoredResult | None:
        """What the handler of a message returned, as it is stored; None if nothing is kept. See
        ``result``, which waits and decodes."""
        (stored,) = await self._database.run(
            self._database.engine.events.results(check_ids([message_id]))
        )
        return stored

    async def channels(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        prefix: str | None = None,
        paused: bool | None = None,
        limited: bool | None = None,
        limit: int = 1000,
        after: str | None = None,
    ) -> ChannelPage:
        """Channels that hold anything or have a policy, with both and why they wait, the fullest
        first.

        ``prefix`` is the beginning of the name; ``limited`` asks for those with a policy, or for
        the others. A call looks at 10,000 rows at most; ``page.next`` is the position to go on
        from, None at the end. After the first pages, which hold the fullest of what was looked at,
        the others come by name.

        >>> stuck = await queue.channels(paused=True)
        """
        wanted = ChannelFilter(
            None if queue is None else check_name("queue", queue),
            None if channel is None else check_name("channel", channel),
            None if prefix is None else check_prefix(prefix),
            check_flag("paused", paused),
            check_flag("limited", limited),
        )
        engine = self._database.engine
        return await self._database.run(
            channels_with_pauses(engine, wanted, check_limit(limit), after)
        )

    async def minutes(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: Duration = MINUTE,
        by: Literal["queue", "kind"] | None = None,
        times: bool = True,
    ) -> list[Minute]:
        """What happened by minute, or by ``step`` of whole minutes: published, started, completed
        and so on, times of waiting and running, depth. The last hour by default; upkeep counts, and
        keeps 14 days.

        Queues and kinds are added up; ``by="queue"`` keeps queues apart, ``by="kind"`` queues and
        kinds. With ``times=False`` waits and runs are zeros: half of the work.

        >>> lately = await queue.minutes(queue="emails", step=timedelta(minutes=5))
        """
        until = await self.clock() if until is None else check_time("until", until)
        since = until - HOUR if since is None else check_time("since", since)
        return await self._database.run(
            self._database.engine.inspection.minutes(
                checked_minutes(since, until, step, queue, kind, by, times)
            )
        )

    async def workers(self, *, limit: int = 1000) -> list[WorkerInfo]:
        """Worker processes, those seen last first. One that was not seen for 30 seconds has
        vanished; one that stopped as it should is not listed.

        >>> idle = [worker for worker in await queue.workers() if not worker.used]
        """
        return Listing(
            await self._database.run(self._database.engine.workers.workers(check_limit(limit)))
        )

    async def history(self, message_id: int) -> list[HistoryEntry]:
        """What happened to a message, one entry per finished attempt, oldest first.

        >>> [entry.outcome for entry in await queue.history(message.id)]
        """
        (wanted,) = check_ids([message_id])
        return Listing(await self._database.run(self._database.engine.inspection.history(wanted)))

    async def history_since(self, position: str | None = None, *, limit: int = 1000) -> HistoryPage:
        """The history since a position, of all queues; without one, only the current position.

        A reader that continues from the returned position misses nothing and sees nothing twice,
        but only sees what is older than every open writing transaction.

        >>> entries, position = await queue.history_since(position)
        """
        return await self._database.run(
            self._database.engine.inspection.history_since(position, check_limit(limit))
        )

    async def totals(self) -> Totals:
        """Counters that rise, until the server starts anew: the rate is the difference of two by
        the time between."""
        return await self._database.run(self._database.engine.inspection.totals())

    async def clock(self) -> datetime:
        """The database's time, which is the only clock that counts."""
        return await self._database.run(self._database.engine.inspection.clock())

    async def diagnose(self) -> Sequence[Finding]:
        """Diagnoses problems of the database and suggests fixes; works before anything is installed
        too. ``laneway doctor`` also checks this machine.

        >>> [finding for finding in await queue.diagnose() if finding.level != "ok"]
        """
        return Listing(await self._database.run(self._database.engine.maintenance.diagnose()))
