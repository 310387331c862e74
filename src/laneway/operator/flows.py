"""Flows, for an operator."""

from collections.abc import Sequence

from laneway.contract import BATCH
from laneway.flow import DeadNode, FlowInfo, FlowPage, FlowPlace, FlowState, NodeInfo

from .base import Base
from .rights import Right
from .verbs import verb


class FlowActions(Base):
    """A flow may reach into any channel, so it is for those who see all."""

    @verb(Right.VIEW, "refused")
    def flows(
        self,
        *,
        queue: str | None = None,
        state: FlowState | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> FlowPage:
        """Flows that run, or ended not long ago, the newest first; the next page comes
        ``before=page.next``. With a queue or a state it looks at 1,000 flows at most."""
        return self._queue.flows.list(queue=queue, state=state, limit=limit, before=before)

    @verb(Right.VIEW, "refused")
    def flow(self, flow_id: int) -> FlowInfo:
        """How far one is; raises FlowMissing if there is none."""
        return self._queue.flows.get(flow_id)

    @verb(Right.VIEW, "refused")
    def flow_nodes(self, flow_id: int, *, limit: int = 1000, after: int = 0) -> Sequence[NodeInfo]:
        """Its nodes with their states and parents; the next page comes ``after`` the last id."""
        return self._queue.flows.nodes(flow_id, limit=limit, after=after)

    @verb(Right.VIEW, "refused")
    def flow_place(self, message_id: int) -> FlowPlace | None:
        """Where a message stands in its flow: what it came after, and what comes after it."""
        return self._queue.flows.place(message_id)

    @verb(Right.VIEW, "refused")
    def flows_with_dead(self, *, limit: int = 20) -> Sequence[FlowInfo]:
        """The oldest flows that have a dead letter, which holds what waits for it."""
        return self._queue.flows.with_dead_letters(limit=limit)

    @verb(Right.VIEW, "refused")
    def dead_nodes(self, flow_id: int, *, limit: int = 100) -> Sequence[DeadNode]:
        """The nodes of a flow that are dead letters now, which hold the others."""
        return self._queue.flows.dead(flow_id, limit=limit)

    @verb(Right.REDRIVE, "refused", acts=True)
    def redrive_flow(self, flow_id: int) -> int:
        """Puts the dead letters of a flow back, 10,000 at most, so that it goes on; answers how
        many."""
        self._queue.flows.get(flow_id)
        # What becomes a dead letter after this look waits for the next call.
        ids = [node.id for node in self._queue.flows.dead(flow_id, limit=BATCH)]
        return self._acting("redrive_flow", {"flow_id": flow_id}, int).dead_letters.redrive(ids)

    @verb(Right.CANCEL, "refused", acts=True)
    def cancel_flow(self, flow_id: int) -> FlowInfo:
        """Begins nothing more of it, asks its handlers to stop, discards its dead letters."""
        self._queue.flows.get(flow_id)
        core = self._acting("cancel_flow", {"flow_id": flow_id})._core
        core.run(core.engine.cancel_flow(flow_id))
        return self._queue.flows.get(flow_id)
