"""Flows, for an operator."""

from collections.abc import Sequence

from laneway.flow import FlowInfo, NodeInfo

from .base import Base
from .rights import Right
from .verbs import verb


class FlowActions(Base):
    """A flow may reach into any channel, so it is for those who see all."""

    @verb(Right.VIEW, "refused")
    def flows(
        self, *, queue: str | None = None, limit: int = 100, before: int | None = None
    ) -> Sequence[FlowInfo]:
        """Flows that run, or ended not long ago, the newest first; the next page comes ``before``
        the id of the last one."""
        return self._queue.flows.list(queue=queue, limit=limit, before=before)

    @verb(Right.VIEW, "refused")
    def flow(self, flow_id: int) -> FlowInfo:
        """How far one is; raises FlowMissing if there is none."""
        return self._queue.flows.get(flow_id)

    @verb(Right.VIEW, "refused")
    def flow_nodes(self, flow_id: int, *, limit: int = 1000, after: int = 0) -> Sequence[NodeInfo]:
        """Its nodes with their states and parents; the next page comes ``after`` the last id."""
        return self._queue.flows.nodes(flow_id, limit=limit, after=after)

    @verb(Right.CANCEL, "refused", acts=True)
    def cancel_flow(self, flow_id: int) -> FlowInfo:
        """Begins nothing more of it, asks its handlers to stop, discards its dead letters."""
        self._queue.flows.get(flow_id)
        core = self._acting("cancel_flow", {"flow_id": flow_id})._core
        core.run(core.engine.cancel_flow(flow_id))
        return self._queue.flows.get(flow_id)
