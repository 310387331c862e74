"""The verbs of flows."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from laneway.contract import BATCH
from laneway.engines.flows import FlowChanges, FlowNodeRow, is_plain
from laneway.engines.times import micros, moment
from laneway.errors import InvalidOption
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

from .base import SqliteSql, WriteState, listed
from .channels import SqliteChannelRows
from .dead_letters import SqliteDeadLetters
from .operate.control import SqliteWorkers
from .settle.end import SqliteNodeEnds


class SqliteFlows:
    def __init__(
        self,
        sql: SqliteSql,
        nodes: SqliteNodeEnds,
        rows: SqliteChannelRows,
        workers: SqliteWorkers,
        dead_letters: SqliteDeadLetters,
    ) -> None:
        self._sql = sql
        self._nodes = nodes
        self._rows = rows
        self._workers = workers
        self._dead_letters = dead_letters

    def publish_flow(self, flow: FlowDraft, nodes: Sequence[NodeDraft]) -> Plan[PublishedFlow]:
        state = yield from self._sql.begin_write(ids=len(nodes))
        for id, unended in (yield self._sql.statement("live_flow", flow.queue, flow.name)):
            if unended:
                return PublishedFlow(id, [], "existing")
            yield self._sql.statement("end_flow", id, state.now)
        roots = [node.draft for node in nodes if not node.parents]
        refused = yield from self._refusal(roots, state)
        if refused:
            return PublishedFlow(None, [], refused)
        held = len(nodes) - len(roots)
        keep = micros(flow.keep)
        added = (flow.queue, flow.name, state.now, keep, held, len(roots))
        ((flow_id,),) = yield self._sql.statement("add_flow", *added)
        yield self._sql.statement("count_flows", 1)
        ids = [state.message_id + number for number in range(len(nodes))]
        yield from self._add_nodes(flow_id, nodes, ids)
        # As if released: the same statements, and no second way to publish.
        yield from self._nodes.release_nodes(
            [id for id, node in zip(ids, nodes, strict=True) if not node.parents]
        )
        return PublishedFlow(flow_id, ids, "published")

    def _refusal(self, drafts: Sequence[Draft], state: WriteState) -> Plan[Any]:
        """What a channel of the first nodes answers, if one takes no more."""
        names = list(dict.fromkeys((draft.queue, draft.channel) for draft in drafts))
        channels = yield from self._rows.known(names)
        wanted = dict.fromkeys(names, 0)
        for draft in drafts:
            wanted[draft.queue, draft.channel] += 1
        for name, channel in channels.items():
            if channel.closing:
                return "closed"
            if channel.room is not None and wanted[name] > channel.room:
                return "full"
        return None

    def _add_nodes(
        self, flow_id: int, nodes: Sequence[NodeDraft], ids: Sequence[int]
    ) -> Plan[None]:
        edges, plain, held = [], [], []
        for id, node in zip(ids, nodes, strict=True):
            draft, when = node.draft, node.when
            strict = when == "completed"
            for place, parent in enumerate(node.parents):
                edges.append((ids[-parent - 1] if parent < 0 else parent, id, strict, place))
            if is_plain(draft):
                where = (draft.queue, draft.channel, draft.kind, draft.content_type)
                rest = (draft.priority, draft.max_attempts, draft.payload)
                plain.append((id, flow_id, when, *where, *rest))
            else:
                held.append(_held_row(id, flow_id, None, None, None, when, draft))
        if edges:
            yield self._sql.many("add_edge", edges)
        # Binding costs more than storing: eight parameters fewer.
        if plain:
            yield self._sql.many("add_plain_held", plain)
        if held:
            yield self._sql.many("add_held", held)
        yield self._sql.statement("add_nodes", ids[0], ids[-1])

    def stage_nodes(self, lease: Row, nodes: Sequence[NodeDraft]) -> Plan[StagedNodes]:
        state = yield from self._sql.begin_write(ids=len(nodes))
        rows = yield self._sql.statement("held_lease_flow", lease[0], lease[1])
        if not rows:
            return StagedNodes([], "lost")
        flow_id = rows[0][0]
        if flow_id is None:
            return StagedNodes([], "none")
        yield self._sql.statement("delete_stale_stage", lease[0], lease[1])
        known = sorted({parent for node in nodes for parent in node.parents if parent > 0})
        found = yield self._sql.statement("known_nodes", listed(known), flow_id, lease[0], lease[1])
        if len(found) < len(known):
            raise InvalidOption("a node can only come after nodes of the same flow")
        ids = [state.message_id + number for number in range(len(nodes))]
        held = [
            _held_row(
                *(id, flow_id, lease[0], lease[1], listed(_ids(node.parents, ids)), node.when),
                node.draft,
            )
            for id, node in zip(ids, nodes, strict=True)
        ]
        yield self._sql.many("add_held", held)
        return StagedNodes(ids, "staged")

    def parents(self, message_id: int) -> Plan[list[FlowParent]]:
        rows = yield self._sql.read_outside("parents", message_id)
        return [FlowParent(*row) for row in rows]

    def flows(self, queue: str | None, limit: int, before: int | None) -> Plan[list[FlowInfo]]:
        rows = yield self._sql.read_outside("flows", queue, before, limit)
        return [_flow(row) for row in rows]

    def flow(self, flow_id: int) -> Plan[FlowInfo | None]:
        rows = yield self._sql.read_outside("flow", flow_id)
        return _flow(rows[0]) if rows else None

    def flow_nodes(self, flow_id: int, limit: int, after: int) -> Plan[list[NodeInfo]]:
        rows = yield self._sql.read_outside("flow_nodes", flow_id, after, limit)
        return [_node(row) for row in rows]

    def flow_place(self, message_id: int) -> Plan[FlowPlace | None]:
        rows = yield self._sql.read_outside("flow_place", message_id)
        flow = (yield from self.flow(rows[0][0])) if rows else None
        if flow is None:
            return None
        found = yield self._sql.read_outside("node_links", message_id, MOST_LINKS)
        links = [FlowLink(*row) for row in found]
        return FlowPlace(
            flow,
            _node(rows[0][1:]),
            [link for link in links if link.side == "parent"],
            [link for link in links if link.side == "child"],
        )

    def flows_with_dead(self, limit: int) -> Plan[list[FlowInfo]]:
        rows = yield self._sql.read_outside("flows_with_dead", limit)
        return [_flow(row) for row in rows]

    def dead_nodes(self, flow_id: int, limit: int) -> Plan[list[DeadNode]]:
        rows = yield self._sql.read_outside("dead_nodes", flow_id, limit)
        return [DeadNode._make((*about, moment(died))) for *about, died in rows]

    def cancel_flow(self, flow_id: int) -> Plan[None]:
        state = yield from self._sql.begin_write()
        yield self._sql.statement("mark_cancelled", flow_id, state.now)
        rows = yield self._sql.statement("open_nodes", flow_id)
        nodes = [FlowNodeRow(*row) for row in rows]
        changes = FlowChanges()
        for node in nodes:
            if node.state == "held":
                changes.turn(node, "cancelled")
                changes.dropped.append(node.id)
        if changes.nodes:
            yield from self._nodes.write_flow_changes(changes, state)
        for start in range(0, len(nodes), BATCH):
            part = nodes[start : start + BATCH]
            if live := [node.id for node in part if node.state == "live"]:
                yield from self._workers.cancel_running(live)
            if dead := [node.id for node in part if node.state == "dead"]:
                yield from self._dead_letters.discard(dead)


def _ids(parents: Iterable[int], ids: Sequence[int]) -> list[int]:
    return [ids[-parent - 1] if parent < 0 else parent for parent in parents]


def _held_row(
    id: int,
    flow_id: int,
    adder: int | None,
    fence: int | None,
    parents: str | None,
    when: str | None,
    draft: Draft,
) -> tuple[Any, ...]:
    return (
        *(id, flow_id, adder, fence, parents, when),
        *(draft.queue, draft.channel, draft.kind, draft.content_type, draft.headers),
        *(draft.priority, micros(draft.delay), micros(draft.at)),
        *(micros(draft.expires_in), micros(draft.expires_at), draft.max_attempts, draft.payload),
    )


def _node(row: Row) -> NodeInfo:
    id, queue, channel, kind, when, state, ended, parents, pending = row
    found = json.loads(parents)
    return NodeInfo(id, queue, channel, kind, when, state, moment(ended), found, pending)


def _flow(row: Row) -> FlowInfo:
    id, queue, name, created, cancelled, ended, *rest = row
    return FlowInfo(id, queue, name, moment(created), moment(cancelled), moment(ended), *rest)
