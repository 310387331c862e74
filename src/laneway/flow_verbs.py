"""Parts of the engine contract: flows, and by what channels take turns."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from .flow import (
    DeadNode,
    FlowDraft,
    FlowInfo,
    FlowParent,
    FlowPlace,
    NodeDraft,
    NodeInfo,
    PublishedFlow,
    StagedNodes,
)
from .operations import Fairness
from .plan import Plan, Row


class FlowEngine(Protocol):
    """Messages that wait for others."""

    def publish_flow(self, flow: FlowDraft, nodes: Sequence[NodeDraft]) -> Plan[PublishedFlow]:
        """All of its nodes, or none. More than BATCH need one transaction. Whatever ends the last
        parent of a node publishes it in the same transaction."""
        ...

    def stage_nodes(self, lease: Row, nodes: Sequence[NodeDraft]) -> Plan[StagedNodes]:
        """The holder of a lease adds nodes to its message's flow; they become nodes when this lease
        completes the message, and are forgotten if it ends otherwise."""
        ...

    def parents(self, message_id: int) -> Plan[list[FlowParent]]:
        """Those whom a node of a flow came after, in the order in which they were given."""
        ...

    def flows(self, queue: str | None, limit: int, before: int | None) -> Plan[list[FlowInfo]]:
        """The newest first; ``before`` is the id of the last one seen. Upkeep forgets them some
        time after their end."""
        ...

    def flow(self, flow_id: int) -> Plan[FlowInfo | None]: ...

    def flow_nodes(self, flow_id: int, limit: int, after: int) -> Plan[list[NodeInfo]]:
        """By id, those above ``after``; each with its first MOST_PARENTS parents."""
        ...

    def flow_place(self, message_id: int) -> Plan[FlowPlace | None]:
        """The flow of a message, what it came after and what comes after it; None if it belongs to
        none, or that is no longer kept."""
        ...

    def flows_with_dead(self, limit: int) -> Plan[list[FlowInfo]]:
        """The oldest flows that have a dead letter; how many others there are costs nothing."""
        ...

    def dead_nodes(self, flow_id: int, limit: int) -> Plan[list[DeadNode]]:
        """The first of its nodes, by id, that are dead letters now."""
        ...

    def cancel_flow(self, flow_id: int) -> Plan[None]:
        """Nothing more of it is begun: what is held or waits is cancelled, what runs is asked to
        stop, its dead letters are discarded. Safe to repeat."""
        ...


class FairnessVerbs(Protocol):
    """By what the channels of a queue take turns."""

    def set_fairness(self, queue: str, turn: timedelta | None) -> Plan[Fairness]:
        """Channels take turns by the time that handlers take, and one gets ahead of others by
        about ``turn``; by starts if that is None. What runs is not charged."""
        ...

    def fairness(self, queue: str) -> Plan[Fairness]: ...

    def time_ahead(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, float]]:
        """Those of a queue that is fair by time that wait because they have had more worker time
        than others, each with how many seconds more."""
        ...
