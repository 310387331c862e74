"""What the holder of a message does with the flow that it belongs to."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from laneway.client.shared.flow_nodes import FlowNodes, known_id
from laneway.client.shared.flow_parents import Parent, parents_of
from laneway.contract import BATCH
from laneway.durations import Duration
from laneway.errors import FlowMissing, LeaseLost
from laneway.flow import NodeDraft, StagedNodes
from laneway.plan import Row

from .core import AsyncCore

if TYPE_CHECKING:
    from .message import AsyncMessage


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
        core: AsyncCore,
        channel: str | None,
        keep_result: Duration | None,
        connection: object,
    ) -> None:
        where = message.channel if channel is None else channel
        super().__init__(core.options, message.queue, where, keep_result)
        self._message = message
        self._connection = connection

    def _known_parent(self, node: object) -> int:
        """Nodes that were there before are named by their ids."""
        return known_id(node)

    async def __aenter__(self) -> Self:
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

    _core: AsyncCore

    async def _stage_nodes(
        self, lease: Row, nodes: Sequence[NodeDraft], *, connection: object = None
    ) -> StagedNodes:
        plan = self._core.engine.stage_nodes(lease, nodes)
        return await self._core.run(plan, connection, atomic=len(nodes) > BATCH)

    async def _parents(self, message_id: int) -> Sequence[Parent]:
        return await self._core.run(parents_of(self._core.engine, message_id))


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
        return AsyncFlowAddition(message, message._settling._core, channel, keep_result, connection)

    async def parents(self) -> Sequence[Parent]:
        """The messages of its flow that this one came after, in the order of ``after=``, each with
        its outcome and, if it was kept, its result.

        >>> total = sum(parent.result(int) for parent in await message.parents())
        """
        message: Any = self
        found: Sequence[Parent] = await message._settling._parents(message.id)
        return found
