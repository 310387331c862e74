"""Flows: published in one transaction; the settling functions release what is held."""

from collections.abc import Sequence
from typing import Any

from laneway.contract import BATCH
from laneway.engines.flows import edges
from laneway.flow import (
    MOST_LINKS,
    DeadNode,
    FlowDraft,
    FlowInfo,
    FlowLink,
    FlowParent,
    FlowPlace,
    NodeDraft,
    NodeInfo,
    PublishedFlow,
    StagedNodes,
)
from laneway.model import Draft
from laneway.plan import Plan, Row

from .base import PostgresqlSql
from .dead_letters import PostgresqlDeadLetters
from .operate.control import PostgresqlWorkers
from .publish import columns

_KEY, _KEY_WINDOW, _KEY_SCOPE = map(Draft._fields.index, ("key", "key_window", "key_scope"))


class PostgresqlFlows:
    def __init__(
        self, sql: PostgresqlSql, workers: PostgresqlWorkers, dead_letters: PostgresqlDeadLetters
    ) -> None:
        self._sql = sql
        self._workers = workers
        self._dead_letters = dead_letters

    def publish_flow(self, flow: FlowDraft, nodes: Sequence[NodeDraft]) -> Plan[PublishedFlow]:
        """More than BATCH nodes go in several statements, which need one transaction."""
        flow_id, ids = None, list[int]()
        for start in range(0, len(nodes), BATCH):
            values = _values(nodes[start : start + BATCH], start, ids)
            rows = yield self._sql.statement_now("publish_flow", flow_id, *flow, *values)
            flow_id, added, status = rows[0]
            if status != "published":
                return PublishedFlow(flow_id, [], status)
            ids += added
        return PublishedFlow(flow_id, ids, "published")

    def stage_nodes(self, lease: Row, nodes: Sequence[NodeDraft]) -> Plan[StagedNodes]:
        ids = list[int]()
        for start in range(0, len(nodes), BATCH):
            values = _values(nodes[start : start + BATCH], start, ids)
            rows = yield self._sql.statement("stage_nodes", lease[0], lease[1], *values)
            added, status = rows[0]
            if status != "staged":
                return StagedNodes([], status)
            ids += added
        return StagedNodes(ids, "staged")

    def parents(self, message_id: int) -> Plan[list[FlowParent]]:
        rows = yield self._sql.statement("parents", message_id)
        return [FlowParent(*row) for row in rows]

    def flows(self, queue: str | None, limit: int, before: int | None) -> Plan[list[FlowInfo]]:
        rows = yield self._sql.statement("flows", queue, before, limit)
        return [FlowInfo(*row) for row in rows]

    def flow(self, flow_id: int) -> Plan[FlowInfo | None]:
        rows = yield self._sql.statement("flow", flow_id)
        return FlowInfo(*rows[0]) if rows else None

    def flow_nodes(self, flow_id: int, limit: int, after: int) -> Plan[list[NodeInfo]]:
        rows = yield self._sql.statement("flow_nodes", flow_id, after, limit)
        return [NodeInfo(*row) for row in rows]

    def flow_place(self, message_id: int) -> Plan[FlowPlace | None]:
        rows = yield self._sql.statement("flow_place", message_id)
        flow = (yield from self.flow(rows[0][0])) if rows else None
        if flow is None:
            return None
        links = [
            FlowLink(*row)
            for row in (yield self._sql.statement("node_links", message_id, MOST_LINKS))
        ]
        return FlowPlace(
            flow,
            NodeInfo(*rows[0][1:]),
            [link for link in links if link.side == "parent"],
            [link for link in links if link.side == "child"],
        )

    def flows_with_dead(self, limit: int) -> Plan[list[FlowInfo]]:
        rows = yield self._sql.statement("flows_with_dead", limit)
        return [FlowInfo(*row) for row in rows]

    def dead_nodes(self, flow_id: int, limit: int) -> Plan[list[DeadNode]]:
        rows = yield self._sql.statement("dead_nodes", flow_id, limit)
        return [DeadNode(*row) for row in rows]

    def cancel_flow(self, flow_id: int) -> Plan[None]:
        rows = yield self._sql.statement_now("cancel_flow", flow_id)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            if live := [id for id, state in part if state == "live"]:
                yield from self._workers.cancel_running(live)
            if dead := [id for id, state in part if state == "dead"]:
                yield from self._dead_letters.discard(dead)


def _values(nodes: Sequence[NodeDraft], start: int, ids: Sequence[int]) -> list[Any]:
    """The columns of some nodes; ``ids`` are those of the ``start`` nodes before them."""
    when = [node.when for node in nodes]
    if len(set(when)) == 1:
        del when[1:]
    parents, children, places = edges(nodes, start, ids)
    values = columns([node.draft for node in nodes])
    del values[_KEY_SCOPE], values[_KEY : _KEY_WINDOW + 1]
    return [when, parents, children, places, *values]
