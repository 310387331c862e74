"""Flows: messages that wait for other messages, published together; and what their holders do."""

import math
import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from laneway.client.shared.checks import check_limit, check_number
from laneway.client.shared.flows import FlowNodes, Parent, flow_refusal, known_id, parents_of
from laneway.contract import BATCH
from laneway.durations import Duration, check_duration
from laneway.errors import FlowMissing, InvalidOption, LeaseLost, NotEnded, shown
from laneway.flow import (
    FLOW_STATES,
    KEEP_FLOW,
    LOOK_FLOWS,
    DeadNode,
    FlowDraft,
    FlowInfo,
    FlowPage,
    FlowPlace,
    FlowState,
    NodeDraft,
    NodeInfo,
    StagedNodes,
)
from laneway.names import check_name
from laneway.plan import Row
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase
from .waits import pause

if TYPE_CHECKING:
    from .message import AsyncMessage

# What the holder of a message does with the flow that it belongs to.


class AsyncFlowAddition(FlowNodes):
    """Nodes that a running handler adds to its own flow. They begin once it has completed its
    message, and are forgotten if this attempt does not: whoever tries again adds them again.

    >>> async with message.flow() as flow:
    ...     pages = [flow.add(fetch_page, url) for url in found]
    ...     flow.add(merge, after=pages)
    """

    def __init__(
        self,
        message: "AsyncMessage",
        database: AsyncDatabase,
        channel: str | None,
        keep_result: Duration | None,
        connection: object,
    ) -> None:
        where = message.channel if channel is None else channel
        super().__init__(database.options, message.queue, where, keep_result)
        self._message = message
        self._connection = connection

    def _known_parent(self, node: object) -> int:
        """Nodes that were there before are named by their ids."""
        return known_id(node)

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        if kind is not None or not self._drafts:
            return
        message = self._message
        answer = await message._settling._stage_nodes(
            message._row, self._drafts, connection=self._connection
        )
        if answer.status == "lost":
            raise LeaseLost(
                f"the lease on message {message.id} has ended: nothing was added",
                message.id,
                message.fence,
            )
        if answer.status == "none":
            raise FlowMissing(f"message {message.id} belongs to no flow: publish it in one")
        self._note_ids(answer.ids)
        self._drafts.clear()


class AsyncFlowMessageVerbs:
    """A part of the settling calls: those of flows."""

    _database: AsyncDatabase

    async def _stage_nodes(
        self, lease: Row, nodes: Sequence[NodeDraft], *, connection: object = None
    ) -> StagedNodes:
        plan = self._database.engine.flows.stage_nodes(lease, nodes)
        return await self._database.run(plan, connection, atomic=len(nodes) > BATCH)

    async def _parents(self, message_id: int) -> Sequence[Parent]:
        return await self._database.run(parents_of(self._database.engine, message_id))


@explains_mistakes
class AsyncFlowMessage:
    """A part of a message: its flow."""

    __slots__ = ()

    def flow(
        self,
        *,
        channel: str | None = None,
        keep_result: Duration | None = None,
        connection: object = None,
    ) -> AsyncFlowAddition:
        """Adds messages to the flow of this one. They begin once this message is completed under
        this lease; if the attempt fails, they are forgotten. ``after=`` takes nodes that were added
        here, and ids of nodes that were there before; ``queue`` and ``channel`` are this
        message's if none is named.

        >>> async with message.flow() as flow:
        ...     flow.add(merge, after=[flow.add(fetch_page, url) for url in found])
        """
        message: Any = self
        return AsyncFlowAddition(
            message, message._settling._database, channel, keep_result, connection
        )

    async def parents(self) -> Sequence[Parent]:
        """The messages of its flow that this one came after, in the order of ``after=``, each with
        its outcome and, if it was kept, its result.

        >>> total = sum(parent.result(int) for parent in await message.parents())
        """
        message: Any = self
        found: Sequence[Parent] = await message._settling._parents(message.id)
        return found


_FIRST_PAUSE = 0.01  # seconds
_MOST_PAUSE = 0.5
_MOST_IDS = 2**63 - 1


@explains_mistakes
class AsyncFlows:
    """Flows that are running, or ended not long ago.

    >>> for flow in await queue.flows.list(): ...
    """

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def list(
        self,
        *,
        queue: str | None = None,
        state: FlowState | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> FlowPage:
        """The newest first; the next page comes ``before=page.next``. With a queue or a state it
        looks at 1,000 flows at most, so a page may hold fewer than ``limit`` and not be the last.

        >>> flows = await queue.flows.list(queue="imports", limit=20)
        """
        wanted = None if queue is None else check_name("queue", queue)
        if state is not None and state not in FLOW_STATES:
            raise InvalidOption(f"state is {shown(state)}: use {', '.join(FLOW_STATES)}")
        start = None if before is None else check_number("before", before, 1, _MOST_IDS)
        limit = check_limit(limit)
        # A filter in the statement would look for the next match through all flows there are.
        look = limit if wanted is None and state is None else LOOK_FLOWS
        rows = await self._database.run(self._database.engine.flows.flows(None, look, start))
        fits = [row for row in rows if wanted in (None, row.queue) and state in (None, row.state)]
        found = fits[:limit]
        if len(fits) > limit:
            return FlowPage(found, found[-1].id, len(rows))
        return FlowPage(found, rows[-1].id if len(rows) == look else None, len(rows))

    async def get(self, flow_id: int) -> FlowInfo:
        """How far it is; raises FlowMissing if there is none, or no longer.

        >>> (await queue.flows.get(flow.id)).state
        """
        number = check_number("a flow's id", flow_id, 1, _MOST_IDS)
        found = await self._database.run(self._database.engine.flows.flow(number))
        if found is None:
            raise FlowMissing(
                f"there is no flow {number}: its publish is not committed yet, or it ended and is "
                "no longer kept"
            )
        return found

    async def nodes(self, flow_id: int, *, limit: int = 1000, after: int = 0) -> Sequence[NodeInfo]:
        """Its nodes in the order in which they were added, each with its state and its parents; the
        next page comes ``after`` the id of the last one.

        >>> for node in await queue.flows.nodes(flow.id): ...
        """
        number = check_number("a flow's id", flow_id, 1, _MOST_IDS)
        start = check_number("after", after, 0, _MOST_IDS)
        return await self._database.run(
            self._database.engine.flows.flow_nodes(number, check_limit(limit), start)
        )

    async def place(self, message_id: int) -> FlowPlace | None:
        """Where a message stands: its flow, what it came after and what comes after it. None if it
        belongs to no flow, or that is no longer kept.

        >>> place = await queue.flows.place(message.id)
        """
        number = check_number("a message's id", message_id, 1, _MOST_IDS)
        return await self._database.run(self._database.engine.flows.flow_place(number))

    async def with_dead_letters(self, *, limit: int = 20) -> Sequence[FlowInfo]:
        """The oldest flows that have a dead letter: what waits for it is held.

        >>> for flow in await queue.flows.with_dead_letters(): ...
        """
        return await self._database.run(
            self._database.engine.flows.flows_with_dead(check_limit(limit))
        )

    async def dead(self, flow_id: int, *, limit: int = 100) -> Sequence[DeadNode]:
        """Its nodes that are dead letters now, by id: what holds the others.

        >>> for node in await queue.flows.dead(flow.id): ...
        """
        number = check_number("a flow's id", flow_id, 1, _MOST_IDS)
        return await self._database.run(
            self._database.engine.flows.dead_nodes(number, check_limit(limit))
        )

    async def redrive(self, flow_id: int) -> int:
        """Puts its dead letters back, 10,000 at most, so that it goes on; answers how many.

        >>> await queue.flows.redrive(flow.id)
        """
        await self.get(flow_id)
        engine = self._database.engine
        ids = [
            node.id for node in await self._database.run(engine.flows.dead_nodes(flow_id, BATCH))
        ]
        if not ids:
            return 0
        return await self._database.run(engine.dead_letters.redrive(ids, None, timedelta(0)))

    async def wait(self, flow_id: int, timeout: Duration | None = None) -> FlowInfo:
        """Waits until nothing of it runs any more: it has ended, or a dead letter holds the rest.
        Raises NotEnded when ``timeout`` has passed.

        >>> (await queue.flows.wait(flow.id, timeout=60)).state
        """
        patience = math.inf
        if timeout is not None:
            patience = check_duration("timeout", timeout).total_seconds()
        begin = time.monotonic()
        while True:
            flow = await self.get(flow_id)
            if flow.state != "running":
                return flow
            waited = time.monotonic() - begin
            if waited >= patience:
                raise NotEnded(
                    f"flow {flow_id} has not ended after {timeout}: wait again, or look at it "
                    "with queue.flows.nodes()"
                )
            # As for a message: nobody waits more than 10 % longer than necessary.
            await pause(min(max(waited / 10, _FIRST_PAUSE), _MOST_PAUSE, patience - waited))

    async def cancel(self, flow_id: int) -> FlowInfo:
        """Ends a flow: nothing more of it is begun, handlers that run are asked to stop, its dead
        letters are discarded. Safe to repeat.

        >>> await queue.flows.cancel(flow.id)
        """
        await self.get(flow_id)
        await self._database.run(self._database.engine.flows.cancel_flow(flow_id))
        return await self.get(flow_id)


@explains_mistakes
class AsyncFlow(FlowNodes):
    """A flow that is being put together: leave the ``with`` block, and all of it is published, in
    one transaction; if the block raises, nothing is.

    >>> async with queue.flow("import:42", channel="tenant-42") as flow:
    ...     pages = [flow.add(fetch_page, n) for n in range(100)]
    ...     merged = flow.add(merge, after=pages)
    ...     flow.add(tell_owner, after=merged, when="ended")
    """

    def __init__(
        self,
        database: AsyncDatabase,
        draft: FlowDraft,
        channel: str,
        keep_result: Duration | None,
        connection: object,
    ) -> None:
        super().__init__(database.options, draft.queue, channel, keep_result)
        self._database = database
        self._draft = draft
        self._connection = connection
        self.id: int | None = None
        """Known once it was published; None if it has no nodes, which publishes nothing."""
        self.existing = False
        """Whether nothing was published, because a flow of this name has not ended; ``id`` is that
        one's."""

    @property
    def name(self) -> str:
        return self._draft.name

    def _why_no_ids(self) -> str:
        if self.existing:
            return (
                f"a flow {self.name!r} that has not ended was there (flow.existing), and nothing "
                f"was published; queue.flows.nodes({self.id}) lists its nodes"
            )
        return super()._why_no_ids()

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        if kind is not None or not self._drafts:
            return
        plan = self._database.engine.flows.publish_flow(self._draft, self._drafts)
        # PostgreSQL does it in one statement; more than one needs a transaction.
        many = len(self._drafts) > BATCH
        answer = await self._database.run(plan, self._connection, atomic=many)
        if answer.status in ("full", "closed"):
            raise flow_refusal(self.name, answer)
        self.id, self.existing = answer.id, answer.status == "existing"
        if not self.existing:
            self._note_ids(answer.ids)
        self._drafts.clear()

    async def wait(self, timeout: Duration | None = None) -> FlowInfo:
        """Waits until nothing of it runs; see ``queue.flows.wait``."""
        return await AsyncFlows(self._database).wait(self._published(), timeout)

    async def cancel(self) -> FlowInfo:
        """Ends it; see ``queue.flows.cancel``."""
        return await AsyncFlows(self._database).cancel(self._published())

    def _published(self) -> int:
        if self.id is None:
            raise InvalidOption(f"the flow {self.name!r} is not published")
        return self.id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, id {self.id}>"


@explains_mistakes
class AsyncFlowVerbs:
    """A part of the client: flows."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    def flow(
        self,
        name: str,
        *,
        channel: str = "default",
        queue: str | None = None,
        keep_result: Duration | None = None,
        keep: Duration = KEEP_FLOW,
        connection: object = None,
    ) -> AsyncFlow:
        """A flow, to add messages to that come after each other.

        While a flow of the same name in the same ``queue`` has not ended, nothing is published, and
        ``flow.existing`` is True. ``queue``, ``channel`` and ``keep_result`` hold for nodes that
        name none. An ended flow can be looked at for ``keep``. With ``connection`` it belongs to
        the caller's transaction.

        >>> async with queue.flow("import:42", channel="tenant-42") as flow:
        ...     flow.add(merge, after=[flow.add(fetch_page, n) for n in range(100)])
        """
        draft = FlowDraft(
            self._database.options.queue if queue is None else check_name("queue", queue),
            check_name("flow", name),
            check_duration("keep", keep),
        )
        return AsyncFlow(self._database, draft, channel, keep_result, connection)

    @property
    def flows(self) -> AsyncFlows:
        """Flows that are running or ended not long ago: list, wait, cancel."""
        return AsyncFlows(self._database)
