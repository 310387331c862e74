"""Flows where an engine has none yet: every verb says so."""

from collections.abc import Mapping, Sequence

from laneway.contract import Ability
from laneway.errors import InvalidOption
from laneway.flow import (
    FlowDraft,
    FlowInfo,
    FlowParent,
    NodeDraft,
    NodeInfo,
    PublishedFlow,
    StagedNodes,
)
from laneway.plan import Plan, Row


class NoFlows:
    lacks: Mapping[Ability, str]

    def publish_flow(self, flow: FlowDraft, nodes: Sequence[NodeDraft]) -> Plan[PublishedFlow]:
        raise self._missing()

    def stage_nodes(self, lease: Row, nodes: Sequence[NodeDraft]) -> Plan[StagedNodes]:
        raise self._missing()

    def parents(self, message_id: int) -> Plan[list[FlowParent]]:
        raise self._missing()

    def flows(self, queue: str | None, limit: int, before: int | None) -> Plan[list[FlowInfo]]:
        raise self._missing()

    def flow(self, flow_id: int) -> Plan[FlowInfo | None]:
        raise self._missing()

    def flow_nodes(self, flow_id: int, limit: int, after: int) -> Plan[list[NodeInfo]]:
        raise self._missing()

    def cancel_flow(self, flow_id: int) -> Plan[None]:
        raise self._missing()

    def _missing(self) -> InvalidOption:
        return InvalidOption(self.lacks["flows"])
